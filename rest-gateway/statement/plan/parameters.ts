import type { Routine } from "../../../engine/catalog/routines.ts";
import type { CallArgument } from "../intent.ts";

/** The types of the one unnamed parameter that takes a body of this kind as it is. */
const UNNAMED: Readonly<Record<"json" | "text" | "xml" | "bytea", readonly string[]>> = {
  json: ["json", "jsonb"],
  text: ["text"],
  xml: ["xml"],
  bytea: ["bytea"],
};
const TYPES_OF_UNNAMED = Object.values(UNNAMED).flat();

export function namesOf(argument: CallArgument): readonly string[] {
  switch (argument.kind) {
    case "query":
      return [...new Set(argument.values.map(([name]) => name))];
    case "json":
      return argument.names ?? [];
    case "raw":
      return [];
  }
}

/** `[["a", "integer"], ["b", "text"]]` */
export function parametersOf(routine: Routine): string[][] {
  return routine.arguments.map(({ name, type }) => [name ?? "", type.sqlName]);
}

/** Arguments are given by name; only the body of a request can do without one. */
export function isCallable(routine: Routine): boolean {
  const unnamed = routine.arguments.filter(({ name }) => name === null);
  if (routine.kind !== "function" || unnamed.length > 1) return false;
  return unnamed.every(({ type }) => TYPES_OF_UNNAMED.includes(type.sqlName));
}

/** All that it is given it knows, and all that it requires it is given. */
export function takesNames(routine: Routine, argument: CallArgument): boolean {
  const parameters = routine.arguments;
  const given = namesOf(argument);
  if (parameters.length === 0) return given.length === 0 && argument.kind !== "raw";
  const known = new Set(parameters.map(({ name }) => name));
  return (
    given.every((name) => known.has(name)) &&
    parameters.every(({ name, required }) => !required || (name !== null && given.includes(name)))
  );
}

/** Takes the body as a whole, as its one parameter without a name. */
export function takesBody({ arguments: [first, ...others] }: Routine, argument: CallArgument): boolean {
  if (argument.kind === "query" || !first || others.length > 0 || first.name !== null) return false;
  if (argument.kind === "json" && argument.isCsv) return false;
  return isUnnamed(argument) || UNNAMED[argument.kind === "json" ? "json" : argument.type].includes(first.type.sqlName);
}

/** `{"": "x"}`, as clients call what has no name: the body is for that parameter then, whatever its type. */
function isUnnamed(argument: CallArgument): boolean {
  return argument.kind === "json" && argument.names?.length === 1 && argument.names[0] === "";
}
