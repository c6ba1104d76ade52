import type { CatalogTable, Policy } from "#catalog";
import { quotedName } from "#postgres/client";
import { charactersOutside, closingIndex, printedName } from "../inspect/printed-condition.ts";

/** Matches a call that is evaluated once per row unless it is in a sub-select. */
const CALLER_FUNCTION = /\b(?:auth\.\w+|current_setting)\(/g;
const IN_LIST = / IN \( SELECT\b/g;
/** Arguments that are the same for all rows: literals, with or without a cast. */
const CONSTANT_ARGUMENTS = /^(?:[\s,]|NULL|true|false|-?\d+(?:\.\d+)?|'')*$/;
const STRING = /'(?:[^']|'')*'/g;
const CAST = /::(?:"[^"]+"|[\w. ])+(?:\[\])?/g;

type SlowPolicy = {
  /** True if it evaluates who the caller is once per row. */
  readonly asksPerRow: boolean;
  /** True if it compares with a list in a form that no index serves. */
  readonly comparesWithList: boolean;
  /** The same policy in the fast form; null if it has to be written by hand. */
  readonly sql: string | null;
};

/** Returns null if the policy is in the fast form. */
export function findSlowPolicy({ name, using, check }: Policy, table: CatalogTable): SlowPolicy | null {
  const conditions = [using, check].filter((condition) => condition !== null);
  const asksPerRow = conditions.some((condition) => callsPerRow(condition).length > 0);
  const comparesWithList = using !== null && uncorrelatedLists(using, table).length > 0;
  if (!asksPerRow && !comparesWithList) return null;
  const [fastUsing, fastCheck] = [using, check].map(
    (condition) => condition && withFastLists(withFastCalls(condition), table),
  );
  const isChanged = fastUsing !== using || fastCheck !== check;
  const parts = [
    ...(using === null ? [] : [`using (${fastUsing})`]),
    ...(check === null ? [] : [`with check (${fastCheck})`]),
  ];
  const sql = `alter policy ${quotedName(name)} on ${quotedName(table.schema, table.name)} ${parts.join(" ")};`;
  return { asksPerRow, comparesWithList, sql: isChanged ? sql : null };
}

type Span = { readonly start: number; readonly end: number };

function callsPerRow(condition: string): Span[] {
  return [...condition.matchAll(CALLER_FUNCTION)]
    .filter(({ index }) => !isInText(condition, index) && !isInSelect(condition.slice(0, index)))
    .map(({ 0: call, index }) => ({ start: index, end: closingIndex(condition, index + call.length - 1) + 1 }));
}

function withFastCalls(condition: string): string {
  return callsPerRow(condition)
    .filter(({ start, end }) => hasConstantArguments(condition.slice(start, end)))
    .reduceRight(
      (text, { start, end }) => `${text.slice(0, start)}( SELECT ${text.slice(start, end)})${text.slice(end)}`,
      condition,
    );
}

function hasConstantArguments(call: string): boolean {
  const list = call.slice(call.indexOf("(") + 1, -1).replaceAll(STRING, "''");
  return CONSTANT_ARGUMENTS.test(list.replaceAll(CAST, ""));
}

/** The lists of `x IN ( SELECT … )` that are the same for all rows: from their opening bracket to their closing one. */
function uncorrelatedLists(condition: string, { name }: CatalogTable): Span[] {
  // Postgres prints columns of the table with its name inside of a sub-select.
  const ofRow = `${printedName(name)}.`;
  return [...condition.matchAll(IN_LIST)]
    .filter(({ index }) => !isInText(condition, index) && !isInSelect(condition.slice(0, index)))
    .map(({ index }) => ({ start: index + " IN ".length, end: closingIndex(condition, index + " IN ".length) }))
    .filter(({ start, end }) => {
      const left = condition.slice(0, start - " IN ".length);
      return !condition.slice(start, end).includes(ofRow) && !isRow(left) && !/NOT \([^()]*$/.test(left);
    });
}

/** `= ANY (ARRAY( SELECT … ))` means the same, also where values are null, and can be the condition of an index. */
function withFastLists(condition: string, table: CatalogTable): string {
  return uncorrelatedLists(condition, table).reduceRight((text, { start, end }) => {
    const before = text.slice(0, start - " IN ".length);
    return `${before} = ANY (ARRAY${text.slice(start, end + 1)})${text.slice(end + 1)}`;
  }, condition);
}

/** True if the text ends with several values in brackets, such as `(a, b)`, which are not the arguments of a function. */
function isRow(text: string): boolean {
  if (!text.endsWith(")")) return false;
  let depth = 0;
  let hasComma = false;
  for (let at = text.length - 1; at >= 0; at--) {
    if (text[at] === ")") depth++;
    else if (text[at] === "(" && --depth === 0) return hasComma && !/(?<!\bROW)[\w"]$/.test(text.slice(0, at));
    else if (text[at] === "," && depth === 1) hasComma = true;
  }
  return false;
}

/** True if the index is inside of a literal or a quoted name. */
function isInText(text: string, at: number): boolean {
  return !charactersOutside(text).some(({ index }) => index === at);
}

/** True if the end of the text is inside a sub-select. */
function isInSelect(before: string): boolean {
  const begun: boolean[] = [];
  for (const [sign] of before.matchAll(/\(\s*SELECT\b|\(|\)/g)) {
    if (sign === ")") begun.pop();
    else begun.push(sign !== "(");
  }
  return begun.includes(true);
}
