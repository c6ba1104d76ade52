import type { SurfaceChange } from "./contract.ts";
import type { FunctionShape, TableInterface } from "./read-table-interface.ts";
import { compareTypes, strongest } from "./type-shape-changes.ts";

type InterfaceFunctions = TableInterface["functions"];

/** Changes of `/rest/v1/rpc`, which passes arguments by name. */
export function functionChanges(before: InterfaceFunctions, after: InterfaceFunctions): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  for (const [name, overloads] of Object.entries(before)) {
    const now = after[name];
    if (!now)
      changes.push({
        level: "breaking",
        object: `${name}()`,
        message: "The function is no longer there, or nobody may call it.",
      });
    else for (const overload of overloads) changes.push(...overloadChanges(signatureOf(name, overload), overload, now));
  }
  for (const name of Object.keys(after))
    if (!before[name]) changes.push({ level: "compatible", object: `${name}()`, message: "The function is new." });
  return changes;
}

function signatureOf(name: string, overload: FunctionShape): string {
  return `${name}(${overload.arguments.map((argument) => argument.name).join(", ")})`;
}

/** Returns the changes for calls of the overload, assuming that they use the overload that fits best. */
function overloadChanges(object: string, was: FunctionShape, candidates: readonly FunctionShape[]): SurfaceChange[] {
  const compared = candidates.map((now) => compareOverloads(object, was, now));
  return compared.toSorted((one, other) => strongest(one) - strongest(other) || one.length - other.length)[0] ?? [];
}

function compareOverloads(object: string, was: FunctionShape, now: FunctionShape): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  for (const { name, type, required } of was.arguments) {
    const same = now.arguments.find((argument) => argument.name === name);
    if (!same) changes.push({ level: "breaking", object, message: `The argument ${name} is no longer there.` });
    else {
      changes.push(...compareTypes(`${object} ${name}`, type, same.type));
      if (same.required && !required)
        changes.push({ level: "breaking", object, message: `The argument ${name} is required.` });
    }
  }
  for (const { name, required } of now.arguments) {
    if (was.arguments.some((argument) => argument.name === name)) continue;
    changes.push(
      required
        ? { level: "breaking", object, message: `The argument ${name} is new and required.` }
        : { level: "compatible", object, message: `The argument ${name} is new and optional.` },
    );
  }
  changes.push(...compareTypes(`${object} result`, was.returns, now.returns));
  if (was.returns.set !== now.returns.set)
    changes.push({
      level: "breaking",
      object,
      message: `The result is ${now.returns.set ? "an array" : "one value"} now.`,
    });
  if (was.readOnly && !now.readOnly)
    changes.push({
      level: "breaking",
      object,
      message: "The function is volatile: GET runs it in a read-only transaction.",
    });
  return changes;
}
