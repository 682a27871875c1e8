// What a page can do by itself is written by the server. This only spares reloading: live numbers, progress, sliders.
"use strict";

function every(seconds, work) {
  const again = () => setTimeout(async () => {
    let go = true;
    if (!document.hidden) { try { go = await work(); } catch { go = true; } }
    if (go !== false) again();
  }, seconds * 1000);
  again();
}

async function fetched(address) {
  const answer = await fetch(address, { credentials: "same-origin", headers: { accept: "application/json" } });
  return answer.ok ? answer.json() : null;
}

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

const list = document.querySelector("[data-live]");
if (list) every(5, async () => {
  const rows = await fetched(list.dataset.live);
  if (!rows) return false;
  for (const row of list.querySelectorAll("[data-id]")) {
    const now = rows[row.dataset.id];
    if (!now) continue;
    const reports = row.querySelector("[data-field=reports]"), intake = row.querySelector("[data-field=intake]");
    if (reports) reports.textContent = whole.format(now.reports);
    if (intake) intake.textContent = now.intake === null ? "–" : whole.format(now.intake);
  }
});

const search = document.querySelector("[data-progress]");
if (search) every(0.7, async () => {
  const now = await fetched(search.dataset.progress);
  if (!now || now.done) { location.reload(); return false; }
  search.querySelector("progress").value = now.fraction;
  search.querySelector("[data-field=stage]").textContent = now.stage;
  search.querySelector("[data-field=seconds]").textContent = whole.format(now.seconds);
});

// A list of items may come from a file of this computer. It fills the field; nothing is sent before the form is.
for (const field of document.querySelectorAll("textarea[data-file]")) {
  const label = document.createElement("label"), chooser = document.createElement("input");
  chooser.type = "file";
  chooser.accept = ".txt,.tsv,text/plain";
  label.append("or from a file: ", chooser);
  chooser.addEventListener("change", async () => {
    const file = chooser.files[0], most = Number(field.dataset.file);
    if (!file) return;
    const text = file.size < most ? (await file.text()).replace(/\r\n/g, "\n").replace(/\n$/, "") : "";
    const sent = new URLSearchParams({ items: text.replace(/\n/g, "\r\n") }).toString().length;
    const large = file.size >= most || sent > most - 4096;  // the other fields take their part
    chooser.setCustomValidity(large ? "This file is too large for the page: the command takes it." : "");
    if (large) chooser.reportValidity(); else field.value = text;
  });
  field.after(label);
}

// Planning: a slider beside each number. Without this script the numbers alone do the same.
const plan = document.querySelector("form.plan");
if (plan) {
  let waiting = 0;
  for (const input of plan.querySelectorAll("input[data-low]")) {
    const low = Math.log(Number(input.dataset.low)), high = Math.log(Number(input.dataset.high));
    const slider = document.createElement("input");
    Object.assign(slider, { type: "range", min: 0, max: 1000, step: 10 });
    slider.setAttribute("aria-label", `${input.labels[0].textContent.trim()}, slider`);
    const place = () => { slider.value = Math.round(1000 * (Math.log(Number(input.value) || 1) - low) / (high - low)); };
    slider.addEventListener("input", () => {
      const value = Math.exp(low + (slider.value / 1000) * (high - low));
      input.value = Number(value.toPrecision(3));
      clearTimeout(waiting);
      waiting = setTimeout(() => plan.requestSubmit(), 600);
    });
    input.addEventListener("change", place);
    place();
    if (input.value) input.after(slider);
  }
}
