import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Routine } from "../../../engine/catalog/routines.ts";
import type { CallIntent } from "../intent.ts";
import { isCallable, parametersOf, takesBody, takesNames } from "./parameters.ts";
import { ambiguous, noRoutine } from "./routine-refusals.ts";

/**
 * The function that is meant, by its name and the names of its arguments. Refuses what there is not (PGRST202) and what
 * could be several (PGRST203, status 300).
 */
export function findRoutine({ target, argument }: CallIntent, catalog: Catalog, role: string): Routine {
  const all = catalog.schemas.get(target.schema)?.routines.get(target.name) ?? [];
  const overloads = all.filter(isCallable);
  const named = overloads.filter((routine) => takesNames(routine, argument));
  const found = named.length > 0 ? named : overloads.filter((routine) => takesBody(routine, argument));
  if (found.length > 1) throw ambiguous(found.toSorted(inOrder));
  if (!found[0]) throw noRoutine({ target, argument, overloads }, catalog, role);
  return found[0];
}

/** The function of that name that takes a row of the table first, and then what it is given. */
export function findRowRoutine({ target, argument }: CallIntent, of: QualifiedName, catalog: Catalog): Routine {
  const overloads = (catalog.findTable(of)?.rowRoutines ?? []).filter(
    ({ schema, name }) => schema === target.schema && name === target.name,
  );
  const found = overloads.find((routine) => takesNames(withoutRow(routine), argument));
  if (!found) throw noRoutine({ target, argument, overloads: [] }, catalog, "");
  return found;
}

export function withoutRow(routine: Routine): Routine {
  return { ...routine, arguments: routine.arguments.slice(1) };
}

/** As PostgREST lists them: fewest parameters first, then by comment, then by parameters. */
function inOrder(a: Routine, b: Routine): number {
  return (
    a.arguments.length - b.arguments.length ||
    compare(a.comment ?? "", b.comment ?? "") ||
    compare(JSON.stringify(parametersOf(a)), JSON.stringify(parametersOf(b)))
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
