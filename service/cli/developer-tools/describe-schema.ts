import type { Catalog } from "#catalog";
import type { DatabaseDescription, DescribedTable } from "#catalog/database-description";
import { describeDatabase } from "#operations/inspect";
import { withClient } from "#postgres/client";
import type { CommandOutput } from "./own-command.ts";

/** Lists all tables and functions, one per line, or describes one table in full. */
export async function describeSchema(
  table: string | undefined,
  { catalog, directUrl }: { readonly catalog: Catalog; readonly directUrl: string },
): Promise<CommandOutput> {
  const options = { served: catalog, schema: null };
  const description = (await withClient(directUrl, (client) => describeDatabase(client, options)))!;
  if (table === undefined) return { text: listObjects(description), hasFailed: false };
  const found = description.tables.find(({ schema, name }) => [name, `${schema}.${name}`].includes(table));
  if (found) return { text: JSON.stringify(found, null, 1), hasFailed: false };
  return { text: `There is no table ${table}. Without a table, this tool lists all of them.`, hasFailed: true };
}

function listObjects({ schemas, tables, functions }: DatabaseDescription): string {
  const own = new Set(schemas.filter(({ internal }) => !internal).map(({ name }) => name));
  const isOwn = ({ schema, extension = null }: { readonly schema: string; readonly extension?: string | null }) =>
    own.has(schema) && extension === null;
  return [
    ...tables.filter(isOwn).map(describeTable),
    ...functions
      .filter(isOwn)
      .map((each) =>
        withComment(`${each.kind} ${each.schema}.${each.name}(${each.arguments}) returns ${each.returns}`, each),
      ),
  ].join("\n");
}

function describeTable(table: DescribedTable): string {
  const { kind, schema, name, exposed, columns, policies, row_security } = table;
  const columnList = columns.map((column) => `${column.name} ${column.type}`).join(", ");
  const access = exposed ? `row security ${row_security}, ${policies.length} policies` : "not exposed";
  return withComment(`${kind} ${schema}.${name} (${columnList}), ${access}`, table);
}

function withComment(text: string, { comment }: { readonly comment: string | null }): string {
  return comment === null ? text : `${text} -- ${comment.replaceAll(/\s+/g, " ")}`;
}
