import { type Policy, policyCondition } from "#catalog";
import { charactersOutside, closingIndex } from "./printed-condition.ts";

type PolicyRule = Pick<Policy, "command" | "permissive" | "roles" | "using" | "check">;

const COMMANDS: Readonly<Record<Policy["command"], string>> = {
  all: "select, insert, update and delete",
  select: "select",
  insert: "insert",
  update: "update",
  delete: "delete",
};

/** Describes a policy in a sentence: "authenticated may select rows where author_id is the caller's id". Other conditions are quoted. */
export function describePolicy(policy: PolicyRule): string {
  const { command, permissive, roles, check } = policy;
  const callers = roles.includes("public") ? "everybody" : joinWords(roles, "and");
  const may = permissive ? "may" : "may only";
  const checked = command === "insert" ? (check ?? "true") : policyCondition(policy as Policy);
  const rows = `${callers} ${may} ${COMMANDS[command]} ${describeRows(checked)}`;
  if (command === "insert" || check === null || check === policy.using) return rows;
  return `${rows}, and may write ${describeRows(check)}`;
}

function describeRows(condition: string): string {
  const bare = stripParentheses(condition);
  if (bare === "true") return "all rows";
  if (bare === "false") return "no rows";
  return `rows where ${describeCondition(bare)}`;
}

/** Describes a condition as Postgres prints it: each comparison in parentheses. */
export function describeCondition(condition: string): string {
  const bare = stripParentheses(condition);
  for (const [operator, word] of [
    [" OR ", "or"],
    [" AND ", "and"],
  ] as const) {
    const parts = splitOutside(bare, operator);
    if (parts.length > 1) return parts.map((part) => describePart(part, word)).join(` ${word} `);
  }
  return (
    describeNegation(bare) ?? describeComparison(bare) ?? describeTerm(bare) ?? describeColumn(bare) ?? `(${bare})`
  );
}

/** Keeps the parentheses of "a or b" within an "and". */
function describePart(part: string, word: "and" | "or"): string {
  const text = describeCondition(part);
  return word === "and" && splitOutside(stripParentheses(part), " OR ").length > 1 ? `(${text})` : text;
}

function describeNegation(text: string): string | null {
  const inner = /^NOT (.+)$/s.exec(text)?.[1];
  if (inner === undefined) return null;
  const column = columnName(stripParentheses(inner));
  return column === null ? `it is not true that ${describeCondition(inner)}` : `${column} is false`;
}

const COMPARISONS: readonly (readonly [operator: string, words: string])[] = [
  [" IS NOT NULL", "is not null"],
  [" IS NULL", "is null"],
  [" IS NOT DISTINCT FROM ", "is"],
  [" IS DISTINCT FROM ", "is not"],
  [" <> ", "is not"],
  [" >= ", "is at least"],
  [" <= ", "is at most"],
  [" = ", "is"],
  [" > ", "is greater than"],
  [" < ", "is less than"],
];

/** Returns null if a side has no words. */
function describeComparison(text: string): string | null {
  for (const [operator, words] of COMPARISONS) {
    const [left, right, ...more] = splitOutside(text, operator);
    if (right === undefined || more.length > 0) continue;
    if (right === "") {
      const operand = describeOperand(left!);
      return operand && `${operand} ${words}`;
    }
    const [one, other] = [describeOperand(left!), describeOperand(right)];
    if (one === null || other === null) return null;
    // The row comes first: "author_id is the caller's id".
    const isSymmetric = operator === " = " || operator === " <> ";
    const isReversed = isSymmetric && columnName(left!) === null && columnName(right) !== null;
    return isReversed ? `${other} ${words} ${one}` : `${one} ${words} ${other}`;
  }
  return null;
}

function describeOperand(text: string): string | null {
  const bare = withoutCast(stripParentheses(text));
  return describeTerm(bare) ?? columnName(bare) ?? describeLiteral(bare);
}

/** Functions about the caller or the time, with a description in words. */
const TERMS: readonly (readonly [pattern: RegExp, words: (name: string) => string])[] = [
  [/^auth\.uid\(\)$/, () => "the caller's id"],
  [/^auth\.role\(\)$/, () => "the caller's role"],
  [/^auth\.email\(\)$/, () => "the caller's e-mail address"],
  [/^auth\.is_admin\(\)$/, () => "the caller is an administrator"],
  [/^auth\.jwt\(\) ->>? '([^']+)'(?:::text)?$/, (name) => `the caller's claim ${name}`],
  [/^CURRENT_USER$|^CURRENT_ROLE$/i, () => "the caller's role"],
  [/^now\(\)$|^CURRENT_TIMESTAMP$/i, () => "the current time"],
  [/^CURRENT_DATE$/i, () => "the current date"],
  [/^current_setting\('([^']+)'(?:::text)?(?:, (?:true|false))?\)$/, (name) => `the setting ${name}`],
  [/^ANY \(ARRAY\[(.+)\]\)$/s, (list) => `one of ${splitOutside(list, ", ").map(literalText).join(", ")}`],
];

function describeTerm(text: string): string | null {
  const bare = withoutCast(unwrapSelect(stripParentheses(text)));
  for (const [pattern, words] of TERMS) {
    const found = pattern.exec(bare);
    if (found) return words(found[1] ?? "");
  }
  return null;
}

/** Describes a condition that is only a column: "is_public is true". */
function describeColumn(text: string): string | null {
  const column = columnName(text);
  return column === null ? null : `${column} is true`;
}

/** Unwraps `( SELECT auth.uid() AS uid)`, which is evaluated once and means the same. */
function unwrapSelect(text: string): string {
  return stripParentheses(/^SELECT (.+?)(?: AS (?:\w+|"[^"]+"))?$/is.exec(text)?.[1] ?? text);
}

function withoutCast(text: string): string {
  const bare = text.replace(/::(?:[a-z_][\w.]*|"[^"]+")(?: [a-z]+)*(?:\(\d+(?:,\d+)?\))?(?:\[\])*$/i, "");
  return bare === text ? text : stripParentheses(bare);
}

function columnName(text: string): string | null {
  const name = /^(?:(?:\w+|"(?:[^"]|"")+")\.)*(\w+|"(?:[^"]|"")+")$/.exec(stripParentheses(text))?.[1];
  if (name === undefined || /^(?:\d.*|true|false|null|current_\w+|session_user|user)$/i.test(name)) return null;
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
}

function describeLiteral(text: string): string | null {
  return /^(?:'(?:[^']|'')*'|-?\d+(?:\.\d+)?|true|false)$/.test(text) ? literalText(text) : null;
}

function literalText(text: string): string {
  const bare = withoutCast(text.trim());
  return /^'(?:[^']|'')*'$/.test(bare) ? `"${bare.slice(1, -1).replaceAll("''", "'")}"` : bare;
}

/** Removes the parentheses around the whole text. */
function stripParentheses(text: string): string {
  let bare = text.trim();
  while (bare.startsWith("(") && closingIndex(bare) === bare.length - 1) bare = bare.slice(1, -1).trim();
  return bare;
}

/** Splits at an operator that is neither in parentheses nor in quotes. */
function splitOutside(text: string, operator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (const { index, character } of charactersOutside(text)) {
    depth += "([".includes(character) ? 1 : ")]".includes(character) ? -1 : 0;
    if (depth > 0 || index < start || !text.startsWith(operator, index)) continue;
    parts.push(text.slice(start, index));
    start = index + operator.length;
  }
  return [...parts, text.slice(start)];
}

function joinWords(words: readonly string[], last: string): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
