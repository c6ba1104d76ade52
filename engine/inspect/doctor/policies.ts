import { quotedName } from "../../quoted-name.ts";
import { exposedTables } from "../exposed-tables.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** What Postgres prints where a function or a setting is asked for once per row, and not once per statement. */
const ASKED = /\b(?:auth\.\w+|current_setting)\(/g;

/** Policies that ask who the caller is anew for each row. */
export function policyFindings({ catalog }: Facts): Finding[] {
  return exposedTables(catalog).flatMap((table) =>
    table.policies
      .filter(({ using, check }) => isAskedPerRow(using) || isAskedPerRow(check))
      .map(({ name }) => ({
        kind: "slow",
        what: `The policy ${quotedName(name)} on ${quotedName(table.schema, table.name)} asks who the caller is once per row.`,
        fix: "-- Write (select auth.uid()) in place of auth.uid(): it is then asked once per statement.",
      })),
  );
}

function isAskedPerRow(expression: string | null): boolean {
  if (expression === null) return false;
  return [...expression.matchAll(ASKED)].some(({ index }) => !isInSelect(expression.slice(0, index)));
}

/** Whether a sub-select has been begun that is not yet ended. */
function isInSelect(before: string): boolean {
  const begun: boolean[] = [];
  for (const [sign] of before.matchAll(/\(\s*SELECT\b|\(|\)/g)) {
    if (sign === ")") begun.pop();
    else begun.push(sign !== "(");
  }
  return begun.includes(true);
}
