import pg from "pg";
import type { Catalog } from "../engine/catalog/catalog.ts";
import type { Table } from "../engine/catalog/tables.ts";
import type { Finding } from "../engine/inspect/doctor/finding.ts";
import { quotedName } from "../engine/quoted-name.ts";
import { displacedTables } from "../rest-gateway/resource/table-addresses.ts";

/** Tables at another address than that of their name. */
export function addressFindings(catalog: Catalog): Finding[] {
  return displacedTables(catalog).map(({ table, address, holder }) => ({
    kind: "advice",
    what: `${nameOf(table)} is at /api/v1/${address}, because ${nameOf(holder)} has the address that its name gives.`,
    fix: `comment on ${kindOf(table)} ${nameOf(table)} is ${withAddress(table)};  -- or rename it`,
  }));
}

function kindOf({ kind }: Table): string {
  return kind === "partitioned table" ? "table" : kind;
}

/** Before what its comment says already. */
function withAddress({ comment }: Table): string {
  return pg.escapeLiteral(["@address another-name", ...(comment === null ? [] : [comment])].join("\n"));
}

function nameOf({ schema, name }: Table): string {
  return quotedName(schema, name);
}
