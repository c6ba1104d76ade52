import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Routine } from "../../../engine/catalog/routines.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { CallArgument, CallIntent } from "../intent.ts";
import { nearest } from "./near.ts";
import { isCallable, namesOf, parametersOf } from "./parameters.ts";
import { mayCall } from "./sight.ts";

const ALIKE_NAMES = 0.75;
const ALIKE_PARAMETERS = 0.33;

export function ambiguous(found: readonly Routine[]): ApiError {
  const signatures = found.map((routine) => {
    const parameters = parametersOf(routine).map(([name, type]) => `${name} => ${type}`);
    return `${routine.schema}.${routine.name}(${parameters.join(", ")})`;
  });
  return new ApiError(
    300,
    "PGRST203",
    `Could not choose the best candidate function between: ${signatures.join(", ")}`,
    {
      hint:
        "Try renaming the parameters or the function itself in the database " +
        "so function overloading can be resolved",
    },
  );
}

type Search = {
  readonly target: CallIntent["target"];
  readonly argument: CallArgument;
  /** The functions of this name. */
  readonly overloads: readonly Routine[];
};

export function noRoutine(search: Search, catalog: Catalog, role: string): ApiError {
  const { target, argument } = search;
  const names = namesOf(argument).toSorted();
  const whole = `${target.schema}.${target.name}`;
  if (argument.kind === "raw") {
    return new ApiError(404, "PGRST202", `Could not find the function ${whole} in the schema cache`, {
      details: searchedFor(`${whole} with a single unnamed ${argument.type} parameter`),
    });
  }
  const signature = names.length === 0 ? " without parameters" : `(${names.join(", ")})`;
  const parameters =
    names.length === 0 ? " without parameters" : ` with parameter${names.length > 1 ? "s" : ""} ${names.join(", ")}`;
  const orWhole = argument.kind === "json" && !argument.isCsv ? " or with a single unnamed json/jsonb parameter" : "";
  return new ApiError(404, "PGRST202", `Could not find the function ${whole}${signature} in the schema cache`, {
    details: searchedFor(whole + parameters + orWhole),
    hint: hintFor(search, names, catalog, role),
  });
}

function searchedFor(what: string): string {
  return `Searched for the function ${what}, but no matches were found in the schema cache.`;
}

function hintFor(
  { target: { schema, name }, overloads }: Search,
  names: readonly string[],
  catalog: Catalog,
  role: string,
): string | null {
  const inSight = overloads.filter((routine) => mayCall(catalog, role, routine));
  if (inSight.length > 0) {
    const signatures = inSight.map((routine) => list(routine.arguments.map((parameter) => parameter.name ?? "")));
    const meant = nearest(list(names), signatures, { least: ALIKE_PARAMETERS, mayName: () => true });
    return meant && `Perhaps you meant to call the function ${schema}.${name}${meant}`;
  }
  const routines = catalog.schemas.get(schema)?.routines ?? new Map<string, readonly Routine[]>();
  const mayName = (known: string) =>
    routines.get(known)!.some((routine) => isCallable(routine) && mayCall(catalog, role, routine));
  const meant = nearest(name, [...routines.keys()], { least: ALIKE_NAMES, mayName });
  return meant && `Perhaps you meant to call the function ${schema}.${meant}`;
}

/** `(a, b)` */
function list(parameters: readonly string[]): string {
  return `(${parameters.toSorted().join(", ")})`;
}
