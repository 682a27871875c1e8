"""What can be expected of 20,000 users and five features: 2^5 sets are possible."""

from ldp_server.answers.choose import Kind, alternatives, table

print(table(alternatives(users=20_000, size=2**5, epsilon="1", kind=Kind.ATTRIBUTES)))
