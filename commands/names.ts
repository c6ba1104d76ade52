import type { Catalog } from "../engine/catalog/catalog.ts";
import { quotedName } from "../engine/quoted-name.ts";
import type { TableNames } from "../plugins/table-names.ts";
import { tableAddresses } from "../rest-gateway/resource/table-addresses.ts";

/** What every interface calls each exposed table: a line for each, by its name in SQL. */
export function nameLines(catalog: Catalog, inGraphQL: readonly TableNames[]): string[] {
  const graphqlNames = new Map(inGraphQL.map((names) => [quotedName(names.schema, names.table), names]));
  const rows = [...tableAddresses(catalog).tables].map(([address, { schema, name }]) => {
    const { type = "-", fields = [] } = graphqlNames.get(quotedName(schema, name)) ?? {};
    return [`${schema}.${name}`, `/api/v1/${address}`, [type, ...fields].join(" ")];
  });
  rows.sort(([one], [other]) => (one! < other! ? -1 : 1));
  const all = [["table", "REST", "GraphQL: type, fields"], ...rows];
  const widths = [0, 1].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  return all.map(([table, address, graphql]) => {
    return `${table!.padEnd(widths[0]!)}  ${address!.padEnd(widths[1]!)}  ${graphql}`;
  });
}
