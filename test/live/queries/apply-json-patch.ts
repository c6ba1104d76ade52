import type { PatchOperation } from "../../../live/queries/json-patch.ts";

/** Applies a JSON Patch (RFC 6902) as a client does. Throws for a place that does not exist. */
export function applyJsonPatch(document: unknown, patch: readonly PatchOperation[]): unknown {
  const holder = { root: structuredClone(document) };
  for (const operation of patch) {
    const names = operation.path
      .split("/")
      .slice(1)
      .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = names.length === 0 ? "root" : names.pop()!;
    let parent: unknown = names.length === 0 && operation.path === "" ? holder : holder.root;
    for (const name of names) parent = (parent as Record<string, unknown>)[name];
    applyTo(parent as Record<string, unknown> | unknown[], last, structuredClone(operation));
  }
  return holder.root;
}

function applyTo(parent: Record<string, unknown> | unknown[], name: string, operation: PatchOperation): void {
  if (Array.isArray(parent)) {
    const at = Number(name);
    if (at > parent.length || (operation.op !== "add" && at >= parent.length)) throw new Error(`no place ${name}`);
    if (operation.op === "remove") parent.splice(at, 1);
    else parent.splice(at, operation.op === "add" ? 0 : 1, operation.value);
    return;
  }
  if (operation.op !== "add" && !Object.hasOwn(parent, name)) throw new Error(`no member ${name}`);
  if (operation.op === "remove") delete parent[name];
  else parent[name] = operation.value;
}
