"""A second implementation of the sketches' public codes, from docs/protocol.md alone: shares no code with the product.

It is slow and plain on purpose: fields by polynomials, Lagrange's formula at every use, graphs as sets of pairs.
"""

from __future__ import annotations

from tests.independent import expand_words, kwise_hash, linear_hash_report, pairwise_hash, permute

POLYNOMIALS = [
    None,
    "x+1",
    "x2+x+1",
    "x3+x+1",
    "x4+x+1",
    "x5+x2+1",
    "x6+x+1",
    "x7+x3+1",
    "x8+x4+x3+x2+1",
    "x9+x4+1",
    "x10+x3+1",
    "x11+x2+1",
    "x12+x6+x4+x+1",
    "x13+x4+x3+x+1",
    "x14+x10+x6+x+1",
    "x15+x+1",
    "x16+x12+x3+x+1",
]


def modulus(c):
    total = 0
    for term in POLYNOMIALS[c].split("+"):
        total += 1 if term == "1" else 1 << int(term[1:] or "1")
    return total


def product(a, b, c):
    """Multiply as polynomials over two elements, then take the remainder."""
    whole = 0
    for i in range(c):
        if b >> i & 1:
            whole ^= a << i
    for i in range(2 * c, c - 1, -1):
        if whole >> i & 1:
            whole ^= modulus(c) << (i - c)
    return whole


def quotient(a, b, c):
    """The x with x b = a, as a times b to the power 2^c - 2."""
    power, base, exponent = 1, b, (1 << c) - 2
    while exponent:
        if exponent & 1:
            power = product(power, base, c)
        base = product(base, base, c)
        exponent >>= 1
    return product(a, power, c)


def codeword(symbols, length, c):
    """f(0) ... f(length - 1) for the polynomial with f(j) = symbol j."""
    out = []
    for m in range(length):
        value = 0
        for j, symbol in enumerate(symbols):
            term = symbol
            for i in range(len(symbols)):
                if i != j:
                    term = quotient(product(term, m ^ i, c), j ^ i, c)
            value ^= term
        out.append(value)
    return out


def graph(seed, teams, degree, attempt):
    """Each team's neighbours in slot order."""
    label = f"expander-sketch/expander/attempt={attempt}"
    rounds = (degree + 1) // 2
    words = expand_words(seed, label, rounds * (teams - 1))
    slots = [{} for _ in range(teams)]
    for i in range(rounds):
        order = list(range(teams))
        for step in range(teams - 1):
            last = teams - 1 - step
            place = words[i * (teams - 1) + step] * (last + 1) // 2**64
            order[place], order[last] = order[last], order[place]
        if 2 * i + 1 < degree:
            for n in range(teams):
                slots[order[n]][2 * i] = order[(n + 1) % teams]
                slots[order[n]][2 * i + 1] = order[n - 1]
        else:
            for n in range(0, teams, 2):
                slots[order[n]][2 * i] = order[n + 1]
                slots[order[n + 1]][2 * i] = order[n]
    return [[row[s] for s in range(degree)] for row in slots]


def expander_cell(seed, bits, parameters, index, team):
    c, y, teams = parameters["chunk_bits"], parameters["hash_bits"], parameters["teams"]
    block = permute(seed, "expander-sketch/permutation", bits, index)
    k = -(-bits // c)
    symbols, rest = [], block
    for j in range(k):
        width = (bits + k - 1 - j) // k
        symbols.append(rest % 2**width)
        rest //= 2**width
    word = codeword(symbols, teams, c)

    def h(m):
        label = f"expander-sketch/hash/{m}"
        if parameters["symbol_pointers"]:
            return pairwise_hash(seed, label, c, 2**y, word[m])
        return pairwise_hash(seed, label, bits, 2**y, block)

    fields = [(word[team], c)]
    if not parameters["symbol_pointers"]:
        fields.append((h(team), y))
    fields += [(h(n), y) for n in graph(seed, teams, parameters["degree"], parameters["attempt"])[team]]
    if parameters["bucket_bits"]:
        buckets = 2 ** parameters["bucket_bits"]
        fields.append((kwise_hash(seed, "expander-sketch/bucket", bits, 8 * bits, buckets, block), 0))
    cell, shift = 0, 0
    for value, width in fields:
        cell += value << shift
        shift += width
    return cell


def tree_cell(seed, bits, name, parameters, index, level):
    block = permute(seed, f"{name}/permutation", bits, index)
    starts = [0, *range(parameters["first_bits"], bits, parameters["step_bits"])]
    starts += [bits] * parameters.get("check_levels", 0)
    start, end = starts[level], [*starts, bits][level + 1]
    payload = block // 2**start % 2 ** (end - start)
    if start == 0:
        return payload
    room = 2 ** (parameters["cell_bits"] - (end - start))
    return payload + 2 ** (end - start) * pairwise_hash(seed, f"{name}/level/{level}", start, room, block % 2**start)


def teams_of(name, bits, parameters):
    if name == "expander-sketch":
        return parameters["teams"]
    return 1 + len(range(parameters["first_bits"], bits, parameters["step_bits"])) + parameters.get("check_levels", 0)


def report(name, seed, epsilon, bits, parameters, index, words):
    """The report of a sketch with one report."""
    q, t = parameters["q"], parameters["t"]
    team = words[0] * teams_of(name, bits, parameters) // 2**64
    if name == "expander-sketch":
        cell = expander_cell(seed, bits, parameters, index, team)
    else:
        cell = tree_cell(seed, bits, name, parameters, index, team)
    return team * (q**t - 1) // (q - 1) * q + linear_hash_report(epsilon, q, t, cell, words[1], words[2])
