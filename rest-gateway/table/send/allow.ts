import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Routine } from "../../../engine/catalog/routines.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import type { CallArgument } from "../../statement/intent.ts";
import { noRoutine } from "../../statement/plan/routine-refusals.ts";
import { findTable } from "../../statement/plan/table.ts";
import type { Resource } from "../parse/resource.ts";

type Seen = { readonly schema: string; readonly catalog: Catalog; readonly role: string };

/** `OPTIONS,GET,HEAD,POST`: what makes sense for the resource as it is. Refuses one that there is not. */
export function methodsOf({ kind, name }: Resource & { name?: string }, { schema, catalog, role }: Seen): string {
  if (kind === "root" || name === undefined) return "OPTIONS,GET,HEAD";
  if (kind === "table") return methodsOfTable(findTable({ schema, name }, catalog, role));
  const [routine] = catalog.schemas.get(schema)?.routines.get(name) ?? [];
  if (!routine)
    throw noRoutine({ target: { schema, name }, argument: WITHOUT_ARGUMENTS, overloads: [] }, catalog, role);
  return methodsOfRoutine(routine);
}

const WITHOUT_ARGUMENTS: CallArgument = { kind: "query", values: [] };

function methodsOfTable({ insertable, updatable, deletable, primaryKey }: Table): string {
  const methods = ["OPTIONS", "GET", "HEAD"];
  if (insertable) methods.push("POST");
  if (insertable && updatable && primaryKey.length > 0) methods.push("PUT");
  if (updatable) methods.push("PATCH");
  if (deletable) methods.push("DELETE");
  return methods.join(",");
}

/** A function that changes something is not to be called by following a link. */
function methodsOfRoutine({ volatility }: Routine): string {
  return volatility === "volatile" ? "OPTIONS,POST" : "OPTIONS,GET,HEAD,POST";
}
