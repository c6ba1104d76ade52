import type { Catalog } from "../../../engine/catalog/catalog.ts";
import { exposedSchemas } from "../../../engine/catalog/exposed-schemas.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { GatewayRequest } from "../../http.ts";
import { profileHeader, schemaInHeader } from "../../profile.ts";
import { tableAddresses } from "../table-addresses.ts";
import { type Address, withFirstName } from "./address.ts";

/**
 * The address that means the same without a schema in the headers: its first segment is a table of that schema. Null where
 * the schema has none of that name. At the root each name belongs to one table.
 */
export function addressInProfile(
  address: Address,
  { method, headers }: Pick<GatewayRequest, "method" | "headers">,
  catalog: Catalog,
): Address | null {
  const header = profileHeader(method, headers);
  if (header === undefined || address.base === "") return address;
  const schemas = exposedSchemas(catalog).map(({ name }) => name);
  const schema = schemaInHeader(header, schemas);
  if (!schemas.includes(schema)) throw noSchema(schema, schemas);
  const { addresses, findIn } = tableAddresses(catalog);
  const table = findIn(schema, address.segments[0]!);
  return table ? withFirstName(address, addresses.get(table)!) : null;
}

function noSchema(schema: string, schemas: readonly string[]): ApiError {
  const message = `The schema ${JSON.stringify(schema)} is not served. Served schemas: ${schemas.join(", ")}.`;
  return new ApiError(406, "NOT_ACCEPTABLE", message);
}
