import type { Difference } from "./findings.ts";

type Expected = {
  readonly reason: string;
  covers(difference: Difference): boolean;
};

/** The intended differences from SQL. All others are faults. */
const EXPECTED: readonly Expected[] = [
  {
    reason: "`sort` separates names by commas, so a column with one in its name is not sorted by at /api/v1",
    covers: ({ interface: where, check, subject }) =>
      where === "resource" && check === "order" && subject.includes(","),
  },
  {
    reason: "row changes have values of an extension's types as Postgres writes them",
    covers: ({ interface: where, got }) => where === "realtime" && got.includes("=>"),
  },
  {
    reason: "a mutation's result is never null, unless the function's comment says @nullable",
    covers: ({ interface: where, check, got }) =>
      where === "graphql" && check === "call" && got.includes("Cannot return null for non-nullable field Mutation."),
  },
];

export function unexpected(differences: readonly Difference[]): Difference[] {
  return differences.filter((difference) => !EXPECTED.some(({ covers }) => covers(difference)));
}
