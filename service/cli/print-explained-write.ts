import { type Policy, policyCondition } from "#catalog";
import type { RequestedWrite, WriteExplanation } from "#operations";

type WrittenRow = WriteExplanation["rows"][number];

/** Prints whether privileges and policies let the role write the rows, and which of them refuse it. */
export function printExplainedWrite(
  explanation: WriteExplanation,
  command: RequestedWrite["command"],
  role: string,
): string {
  const { table, missingGrants, policies, rows } = explanation;
  const refused = rows.filter(({ checks }) => checks.some(({ passes }) => !passes));
  return [
    ...verdictsOf(explanation, refused.length, `${role} ${command}`),
    ...(missingGrants.length > 0 ? [`${role} lacks a privilege to ${command} here.`] : []),
    ...missingGrants.map((grant) => `Missing: ${grant}`),
    ...rowSecurityOf(explanation, command, role),
    ...(refused.length === 0 && missingGrants.length === 0 ? returnedRow(explanation, role) : []),
    ...policies.map(printPolicy),
    ...refused.map((row) => printRefusedRow(row, table.primaryKey)),
  ].join("\n");
}

function verdictsOf(
  { table, missingGrants, rows, isPartial }: WriteExplanation,
  refused: number,
  roleAndCommand: string,
): readonly string[] {
  if (rows.length === 0) {
    return [
      table.primaryKey.length === 0
        ? `${table.name} has no primary key, so its rows cannot be tried.`
        : "The request addresses no row.",
    ];
  }
  const partial = isPartial ? [`Only the first ${rows.length} rows were tried.`] : [];
  if (refused > 0) {
    const which = rows.length === 1 ? "this row" : `${refused} of ${rows.length} rows`;
    return [`Policies do not let ${roleAndCommand} ${which}.`, ...partial];
  }
  if (missingGrants.length > 0) return partial;
  return [
    `Privileges and policies let ${roleAndCommand} this.`,
    "If it was refused, a trigger, a constraint, or a policy of another table has refused it.",
    ...partial,
  ];
}

function rowSecurityOf(
  { table, bypassesPolicies, policies }: WriteExplanation,
  command: RequestedWrite["command"],
  role: string,
): readonly string[] {
  if (table.rowSecurity === "off") return ["Row-level security is disabled: privileges alone decide."];
  if (bypassesPolicies) return [`${role} bypasses row-level security.`];
  return policies.length === 0 ? [`No policy of ${table.name} lets ${role} ${command} rows.`] : [];
}

/** A response with the new row needs what a read of it needs. */
function returnedRow({ rows, missingToReturn }: WriteExplanation, role: string): readonly string[] {
  const isHidden = rows.some(({ returned }) => returned !== null && !returned.passes);
  if (!isHidden && missingToReturn.length === 0) return [];
  return [
    `But ${role} may not read the new row, so an insert that returns it is refused: with .select(), with Prefer: return=representation,`,
    "at /api and /users, and in GraphQL.",
    ...missingToReturn.map((grant) => `Missing: ${grant}`),
    ...rows.flatMap(({ returned }) => (returned === null || returned.passes ? [] : printCheck(returned))),
  ];
}

function printPolicy(policy: Policy): string {
  const { name, permissive, using, check } = policy;
  const existing = using === null && check !== null ? [] : [policyCondition(policy)];
  const written = check === null ? [] : [`with check ${check}`];
  const conditions = [...existing, ...written].map((condition) => `\n  ${condition}`);
  return `\npolicy ${name}${permissive ? "" : " (restrictive: must pass)"}${conditions.join("")}`;
}

function printRefusedRow({ key, checks }: WrittenRow, primaryKey: readonly string[]): string {
  const name = key.map((value, index) => `${primaryKey[index]}=${value}`).join(", ");
  return [`\nrefused ${name || "the new row"}`, ...checks.map(printCheck)].join("\n");
}

function printCheck({ command, on, results }: WrittenRow["checks"][number]): string {
  const row = on === "new" ? "of the row as written" : "of the row as it is";
  return `  ${command}, ${row}: ${printResults(results)}`;
}

/** `own no, shared yes`. */
export function printResults(results: WrittenRow["checks"][number]["results"]): string {
  const answers = results.map(
    ({ policy, passes }) => `${policy.name} ${passes === null ? "unknown" : passes ? "yes" : "no"}`,
  );
  return answers.join(", ") || "no policy allows it";
}
