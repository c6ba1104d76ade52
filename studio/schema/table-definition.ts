import type { DescribedColumn, DescribedGrant, DescribedPolicy, DescribedTable } from "../api/catalog.ts";
import { identifier, identifierOf, identifierOfRole, quoteText } from "../sql-text.ts";

/** The SQL that creates a table or view in its current form, with all its parts: to read, and to copy. */
export function tableDefinition(table: DescribedTable): string {
  const name = identifierOf(table);
  return [
    `${createStatement(table, name)};`,
    ...ownIndexes(table).map(({ definition }) => `${definition};`),
    ...rowSecurity(table, name),
    ...table.policies.map((policy) => policyStatement(policy, name)),
    ...table.triggers.flatMap((trigger) => [
      `${trigger.definition};`,
      ...(trigger.enabled === "origin"
        ? []
        : [`alter table ${name} ${FIRING[trigger.enabled]} ${identifier(trigger.name)};`]),
    ]),
    ...grantStatements(table, name),
    ...comments(table, name),
  ].join("\n");
}

const FIRING = {
  disabled: "disable trigger",
  replica: "enable replica trigger",
  always: "enable always trigger",
} as const;

function createStatement(table: DescribedTable, name: string): string {
  switch (table.kind) {
    case "view":
    case "materialized view": {
      const options = table.security_invoker ? " with (security_invoker = true)" : "";
      return `create ${table.kind} ${name}${options} as\n${table.definition?.replace(/;\s*$/, "")}`;
    }
    case "foreign table":
      return `create foreign table ${name} (\n${lines(table)}\n) server ${identifier(table.server ?? "")}`;
    default: {
      const [parent] = table.parents;
      if (parent && table.partition_bound) {
        return `create table ${name} partition of ${identifierOf(parent)} ${table.partition_bound}${partitionBy(table)}`;
      }
      const inherited = table.parents.length > 0 ? ` inherits (${table.parents.map(identifierOf).join(", ")})` : "";
      return `create ${table.unlogged ? "unlogged " : ""}table ${name} (\n${lines(table)}\n)${inherited}${partitionBy(table)}`;
    }
  }
}

function partitionBy({ partition_key: key }: DescribedTable): string {
  return key === null ? "" : ` partition by ${key}`;
}

function lines({ columns, constraints }: DescribedTable): string {
  const own = constraints.filter(({ inherited }) => !inherited);
  return [
    ...columns.map((column) => `  ${columnLine(column)}`),
    ...own.map(({ name, definition }) => `  constraint ${identifier(name)} ${definition}`),
  ].join(",\n");
}

function columnLine({
  name,
  type,
  collation,
  nullable,
  default: initial,
  identity,
  generated,
}: DescribedColumn): string {
  return [
    identifier(name),
    type,
    ...(collation === null ? [] : [`collate ${collation}`]),
    ...(identity ? [`generated ${identity} as identity`] : []),
    ...(generated ? [`generated always as (${generated.expression}) ${generated.kind}`] : []),
    ...(initial === null ? [] : [`default ${initial}`]),
    ...(nullable ? [] : ["not null"]),
  ].join(" ");
}

/** Returns the indexes without those of constraints, which are created with the table. */
function ownIndexes({ indexes }: DescribedTable) {
  return indexes.filter(({ constraint }) => constraint === null);
}

function rowSecurity({ row_security: state }: DescribedTable, name: string): string[] {
  return [
    ...(state === "off" ? [] : [`alter table ${name} enable row level security;`]),
    ...(state === "forced" ? [`alter table ${name} force row level security;`] : []),
  ];
}

function policyStatement({ name, command, permissive, roles, using, check }: DescribedPolicy, table: string): string {
  return [
    `create policy ${identifier(name)} on ${table}`,
    ...(permissive ? [] : ["  as restrictive"]),
    `  for ${command} to ${roles.map(identifierOfRole).join(", ")}`,
    ...(using === null ? [] : [`  using (${using})`]),
    ...(check === null ? [] : [`  with check (${check})`]),
  ]
    .join("\n")
    .concat(";");
}

function grantStatements({ owner, grants, columns }: DescribedTable, name: string): string[] {
  const others = (all: readonly DescribedGrant[]) =>
    all.filter(({ role, privileges }) => role !== owner && privileges.length > 0);
  return [
    ...others(grants).map(
      ({ role, privileges }) => `grant ${privileges.join(", ")} on ${name} to ${identifierOfRole(role)};`,
    ),
    ...columns.flatMap((column) =>
      others(column.grants).map(({ role, privileges }) => {
        const ofColumn = privileges.map((privilege) => `${privilege} (${identifier(column.name)})`);
        return `grant ${ofColumn.join(", ")} on ${name} to ${identifierOfRole(role)};`;
      }),
    ),
  ];
}

function comments(table: DescribedTable, name: string): string[] {
  const { schema, kind, columns, constraints, indexes, policies, triggers } = table;
  const part = (type: string, named: { readonly name: string; readonly comment: string | null }) =>
    comment(`${type} ${identifier(named.name)} on ${name}`, named.comment);
  return [
    ...comment(`${kind === "partitioned table" ? "table" : kind} ${name}`, table.comment),
    ...columns.flatMap((column) => comment(`column ${name}.${identifier(column.name)}`, column.comment)),
    ...constraints.flatMap((each) => part("constraint", each)),
    ...indexes.flatMap((index) => comment(`index ${identifierOf({ schema, name: index.name })}`, index.comment)),
    ...policies.flatMap((each) => part("policy", each)),
    ...triggers.flatMap((each) => part("trigger", each)),
  ];
}

function comment(object: string, text: string | null): string[] {
  return text === null ? [] : [`comment on ${object} is ${quoteText(text)};`];
}
