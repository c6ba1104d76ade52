import { ADMIN_ROLE } from "#accounts/identity";
import {
  applicablePolicies,
  baseTypeOf,
  type CatalogColumn,
  type CatalogTable,
  type DataType,
  exposedTables,
  hasAnyColumnPrivilege,
} from "#catalog";
import { quotedName } from "#postgres/client";
import { lacksAdministratorPolicy } from "../inspect/administrator-access.ts";
import { printedName } from "../inspect/printed-condition.ts";
import type { DoctorFacts, DoctorFinding } from "./facts.ts";
import { findSlowPolicy } from "./faster-policies.ts";

const STRUCTURED_TYPES = new Set(["json", "jsonb", "xml"]);
const TEXT_TYPES = new Set(["text", "varchar", "bpchar", "citext", "bytea", ...STRUCTURED_TYPES]);
/** Matches a condition that is only true for rows of the current transaction, so an index is of no use. */
const TRANSACTION_TIME = /= (?:now\(\)|CURRENT_TIMESTAMP)|(?:now\(\)|CURRENT_TIMESTAMP) = /g;
/** Matches a length with an upper limit, as Postgres prints it; group 1 is the measured expression. */
const LIMITED_LENGTH =
  /\b(?:length|char_length|character_length|octet_length|bit_length|pg_column_size)\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\) <=? /g;

/** Finds foreign keys, and columns in policies, without an index. */
export function indexFindings({ catalog }: DoctorFacts): DoctorFinding[] {
  return exposedTables(catalog)
    .filter(({ kind }) => kind === "table" || kind === "partitioned table")
    .flatMap((table) => [...foreignKeyFindings(table), ...policyIndexFindings(table)]);
}

function foreignKeyFindings(table: CatalogTable): DoctorFinding[] {
  return table.foreignKeys
    .filter(({ columns }) => !isIndexed(table, columns))
    .map(({ name, columns }) => ({
      kind: "slow",
      problem: `Embedding by ${name} and deleting referenced rows scan all of ${qualifiedNameOf(table)}.`,
      fix: createIndex(table, columns),
    }));
}

function policyIndexFindings(table: CatalogTable): DoctorFinding[] {
  const expressions = table.policies.flatMap(({ using }) => using?.replaceAll(TRANSACTION_TIME, "") ?? []);
  const compared = [...table.columns.keys()].filter((column) => expressions.some((text) => isComparedBy(column, text)));
  const keys = new Set(table.foreignKeys.flatMap(({ columns }) => (columns.length === 1 ? columns : [])));
  return compared
    .filter((column) => !keys.has(column) && !isIndexed(table, [column]))
    .map((column) => ({
      kind: "slow",
      problem: `A policy of ${qualifiedNameOf(table)} filters rows by ${quotedName(column)}, which has no index.`,
      // With the key, a page in its order reads no rows of others.
      fix: createIndex(table, [column, ...table.primaryKey.filter((key) => key !== column)]),
    }));
}

/** Searches the column in a condition as Postgres prints it: `(author_id = …)`, `(… = author_id)`. */
export function isComparedBy(column: string, expression: string): boolean {
  const escaped = printedName(column).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(String.raw`(?<![\w."])${escaped} = |= ${escaped}(?![\w"(])`).test(expression);
}

/** True if an index starts with these columns, in any order. */
function isIndexed({ indexes }: CatalogTable, columns: readonly string[]): boolean {
  return indexes.some(({ columns: indexed, predicate }) => {
    const leading = new Set(indexed.slice(0, columns.length));
    return predicate === null && columns.every((column) => leading.has(column));
  });
}

function createIndex(table: CatalogTable, columns: readonly string[]): string {
  return `create index concurrently on ${qualifiedNameOf(table)} (${columns.map((column) => quotedName(column)).join(", ")});`;
}

export function qualifiedNameOf({ schema, name }: CatalogTable): string {
  return quotedName(schema, name);
}

/** Finds policies that evaluate the caller's identity once per row, or compare with a list in a form that no index serves. */
export function policyFindings({ catalog }: DoctorFacts): DoctorFinding[] {
  // Citus refuses sub-selects, which both faster forms need.
  const tables = exposedTables(catalog).filter(({ distribution }) => distribution === null);
  return tables.flatMap((table) =>
    table.policies.flatMap((policy): DoctorFinding[] => {
      const slow = findSlowPolicy(policy, table);
      if (!slow) return [];
      const reasons = [
        ...(slow.asksPerRow ? ["evaluates who the caller is once per row"] : []),
        ...(slow.comparesWithList ? ["compares with a list by IN, which no index serves"] : []),
      ];
      return [
        {
          kind: "slow",
          problem: `The policy ${quotedName(policy.name)} on ${qualifiedNameOf(table)} ${reasons.join(", and ")}.`,
          fix: slow.sql ?? "-- Write (select auth.uid()) instead of auth.uid(): it is evaluated once per statement.",
        },
      ];
    }),
  );
}

/** Finds tables in which administrators see and change only the rows that policies for others allow, in Studio too. */
export function administratorFindings({ catalog, clients }: DoctorFacts): DoctorFinding[] {
  const tables = exposedTables(catalog).filter(
    (table) =>
      table.policies.length > 0 &&
      clients.some((role) => hasAnyColumnPrivilege(catalog, role, "select", table)) &&
      lacksAdministratorPolicy(catalog, table),
  );
  if (tables.length === 0) return [];
  const names = tables.map((table) => qualifiedNameOf(table));
  const fixes = names.map(
    (name) =>
      `create policy admin_all on ${name} to ${ADMIN_ROLE} using (true) with check (true);\n` +
      `grant select, insert, update, delete on ${name} to ${ADMIN_ROLE};`,
  );
  const problem = `Administrators see and change only what policies for others allow: no policy is for ${ADMIN_ROLE} on ${names.join(", ")}.`;
  return [{ kind: "advice", problem, fix: fixes.join("\n") }];
}

/** Finds text columns without a maximum length that clients may write. Long values make every response with the row large. */
export function textBoundFindings(facts: DoctorFacts): DoctorFinding[] {
  return exposedTables(facts.catalog)
    .filter(({ kind }) => kind === "table" || kind === "partitioned table")
    .flatMap((table) => {
      const unbounded = [...table.columns.values()].filter(
        (column) => isWritableByClients(table, column, facts) && isText(column.type) && !isBounded(table, column),
      );
      return unbounded.length > 0 ? [describeUnbounded(table, unbounded)] : [];
    });
}

function describeUnbounded(table: CatalogTable, columns: readonly CatalogColumn[]): DoctorFinding {
  const name = quotedName(table.schema, table.name);
  const constraints = columns.map((column) => {
    const constraint = quotedName(`${table.name}_${column.name}_max_length`);
    return `add constraint ${constraint} check (${lengthOf(column)} <= 1000) not valid`;
  });
  return {
    kind: "advice",
    problem: `Clients may write text of any length into ${name}: ${columns.map((column) => quotedName(column.name)).join(", ")}.`,
    fix: `alter table ${name} ${constraints.join(", ")};  -- adapt the length`,
  };
}

function lengthOf({ name, type }: CatalogColumn): string {
  const base = baseTypeOf(type);
  const isPlain = base.kind === "base" && !STRUCTURED_TYPES.has(base.name);
  return isPlain
    ? `pg_catalog.length(${quotedName(name)})`
    : `pg_catalog.octet_length(${quotedName(name)}::pg_catalog.text)`;
}

function isWritableByClients(
  table: CatalogTable,
  { name, generated }: CatalogColumn,
  { catalog, clients }: DoctorFacts,
): boolean {
  if (generated !== null) return false;
  return clients.some((role) =>
    (["insert", "update"] as const).some(
      (verb) =>
        catalog.hasPrivilege(role, verb, table, name) &&
        applicablePolicies(catalog, table, role, verb)?.some(({ permissive }) => permissive) !== false,
    ),
  );
}

function isText(type: DataType): boolean {
  const base = baseTypeOf(type);
  return base.kind === "array" ? isText(base.element) : base.kind === "base" && TEXT_TYPES.has(base.name);
}

/** True if the type, a check or a foreign key limits the length of the column. */
function isBounded({ checks, foreignKeys }: CatalogTable, { name, type, maxLength }: CatalogColumn): boolean {
  if (maxLength !== null || domainChecks(type).some((expression) => limitsLength(expression, "VALUE"))) return true;
  return (
    foreignKeys.some(({ columns }) => columns.includes(name)) ||
    checks.some(({ columns, expression }) => columns.includes(name) && limitsLength(expression ?? "", name))
  );
}

function domainChecks(type: DataType): string[] {
  if (type.kind === "array") return domainChecks(type.element);
  if (type.kind !== "domain") return [];
  return [...type.checks.map(({ expression }) => expression), ...domainChecks(type.over)];
}

/** True if a check expression, as Postgres prints it, limits the length of the value. */
function limitsLength(expression: string, value: string): boolean {
  // Postgres also quotes names that are key words.
  const names = [value, quotedName(value)].map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const name = String.raw`(?<![\w."])(?:${names.join("|")})(?![\w"])`;
  const isMeasured = [...expression.matchAll(LIMITED_LENGTH)].some(([, measured]) => new RegExp(name).test(measured!));
  const compared = String.raw`${name}\)?(?:::[a-z ]+)?\)*`;
  const patterns = expression.matchAll(new RegExp(String.raw`${compared} ~\*? '((?:[^']|'')*)'`, "g"));
  return (
    isMeasured ||
    new RegExp(String.raw`${compared} = (?:ANY \(+ARRAY\[|')`).test(expression) ||
    [...patterns].some(([, pattern]) => matchesBoundedLength(pattern!))
  );
}

/** True if the regular expression is anchored at both ends and has no unlimited repetition. */
function matchesBoundedLength(pattern: string): boolean {
  let bare = pattern.replace(/\\./g, "x").replace(/\[\^?\]?[^\]]*\]/g, "x");
  for (let before = ""; before !== bare; ) {
    before = bare;
    bare = bare.replace(/\((?:\?:)?([^()]*)\)/, (_, group: string) => group.replaceAll("|", ""));
  }
  return bare.startsWith("^") && bare.endsWith("$") && !/[*+|]|\{\d+,\}/.test(bare);
}
