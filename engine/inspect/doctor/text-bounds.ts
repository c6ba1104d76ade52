import { applicablePolicies } from "../../catalog/applicable-policies.ts";
import type { Column } from "../../catalog/columns.ts";
import type { Table } from "../../catalog/tables.ts";
import { baseTypeOf, type DataType } from "../../catalog/types.ts";
import { quotedName } from "../../quoted-name.ts";
import { exposedTables } from "../exposed-tables.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

const STRUCTURED_TYPES = new Set(["json", "jsonb", "xml"]);
const TEXT_TYPES = new Set(["text", "varchar", "bpchar", "citext", "bytea", ...STRUCTURED_TYPES]);
/** As Postgres prints a length that has an upper limit; group 1 is what is measured. A lower limit is no bound. */
const LIMITED_LENGTH =
  /\b(?:length|char_length|character_length|octet_length|bit_length|pg_column_size)\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\) <=? /g;

/** Columns in which anonymous or signed-in callers may write texts as long as a request. Each page that holds such a row is as large. */
export function textBoundFindings(facts: Facts): Finding[] {
  return exposedTables(facts.catalog)
    .filter(({ kind }) => kind === "table" || kind === "partitioned table")
    .flatMap((table) => {
      const unbounded = [...table.columns.values()].filter(
        (column) => isWrittenByClients(table, column, facts) && isText(column.type) && !isBounded(table, column),
      );
      return unbounded.length > 0 ? [findingOf(table, unbounded)] : [];
    });
}

function findingOf(table: Table, columns: readonly Column[]): Finding {
  const name = quotedName(table.schema, table.name);
  const constraints = columns.map((column) => {
    const constraint = quotedName(`${table.name}_${column.name}_max_length`);
    return `add constraint ${constraint} check (${lengthOf(column)} <= 1000) not valid`;
  });
  return {
    kind: "advice",
    what: `Callers may write texts of any length into ${name}: ${columns.map((column) => quotedName(column.name)).join(", ")}.`,
    fix: `alter table ${name} ${constraints.join(", ")};  -- or whatever length is right`,
  };
}

function lengthOf({ name, type }: Column): string {
  const base = baseTypeOf(type);
  const isPlain = base.kind === "base" && !STRUCTURED_TYPES.has(base.name);
  return isPlain ? `length(${quotedName(name)})` : `octet_length(${quotedName(name)}::text)`;
}

function isWrittenByClients(table: Table, { name, generated }: Column, { catalog, clients }: Facts): boolean {
  if (generated !== null) return false;
  return clients.some((role) =>
    (["insert", "update"] as const).some(
      (verb) =>
        catalog.mayRole(role, verb, table, name) &&
        applicablePolicies(catalog, table, role, verb)?.some(({ permissive }) => permissive) !== false,
    ),
  );
}

function isText(type: DataType): boolean {
  const base = baseTypeOf(type);
  return base.kind === "array" ? isText(base.element) : base.kind === "base" && TEXT_TYPES.has(base.name);
}

/** By its type, by a check, or because it repeats a value of another table. */
function isBounded({ checks, foreignKeys }: Table, { name, type, maxLength }: Column): boolean {
  if (maxLength !== null || domainChecks(type).some((expression) => limits(expression, "VALUE"))) return true;
  return (
    foreignKeys.some(({ columns }) => columns.includes(name)) ||
    checks.some(({ columns, expression }) => columns.includes(name) && limits(expression ?? "", name))
  );
}

function domainChecks(type: DataType): string[] {
  if (type.kind === "array") return domainChecks(type.element);
  if (type.kind !== "domain") return [];
  return [...type.checks.map(({ expression }) => expression), ...domainChecks(type.over)];
}

/** Whether a check, as Postgres prints it, lets only so many characters of the value pass. */
function limits(expression: string, value: string): boolean {
  // Postgres quotes more names than it must: those that are key words.
  const names = [value, quotedName(value)].map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const name = String.raw`(?<![\w."])(?:${names.join("|")})(?![\w"])`;
  const isMeasured = [...expression.matchAll(LIMITED_LENGTH)].some(([, measured]) => new RegExp(name).test(measured!));
  const compared = String.raw`${name}\)?(?:::[a-z ]+)?\)*`;
  const patterns = expression.matchAll(new RegExp(String.raw`${compared} ~\*? '((?:[^']|'')*)'`, "g"));
  return (
    isMeasured ||
    new RegExp(String.raw`${compared} = (?:ANY \(+ARRAY\[|')`).test(expression) ||
    [...patterns].some(([, pattern]) => isLimited(pattern!))
  );
}

/** Whether the regular expression describes the whole text and repeats nothing without end. */
function isLimited(pattern: string): boolean {
  let bare = pattern.replace(/\\./g, "x").replace(/\[\^?\]?[^\]]*\]/g, "x");
  for (let before = ""; before !== bare; ) {
    before = bare;
    bare = bare.replace(/\((?:\?:)?([^()]*)\)/, (_, group: string) => group.replaceAll("|", ""));
  }
  return bare.startsWith("^") && bare.endsWith("$") && !/[*+|]|\{\d+,\}/.test(bare);
}
