import type { ChangeLevel, SurfaceChange } from "./contract.ts";
import { type ClientField, type ClientType, parseClientTypes } from "./parse-client-types.ts";

/** The program's use of the type: it reads values or writes them. */
type Direction = "read" | "written";

/** The members that contain what a program writes. */
const WRITTEN = ["Insert", "Update", "Args"];

/** Changes of the TypeScript types: whether a program that compiled still does. */
export function typeChanges(before: string, after: string): SurfaceChange[] {
  if (before === after) return [];
  return compareTypes("Database", parseClientTypes(before), parseClientTypes(after), "read");
}

function compareTypes(object: string, was: ClientType, now: ClientType, direction: Direction): SurfaceChange[] {
  if (isSame(was, now)) return [];
  if (was.kind === "object" && now.kind === "object") return compareObjects(object, was.fields, now.fields, direction);
  if (was.kind === "tuple" && now.kind === "tuple") {
    const isLost = was.items.some((item) => !now.items.some((other) => isSame(item, other)));
    return [
      {
        level: isLost ? "breaking" : "compatible",
        object,
        message: isLost ? "One of the list is gone or differs." : "The list is longer.",
      },
    ];
  }
  const level =
    direction === "read" ? readLevel(membersOf(was), membersOf(now)) : writtenLevel(membersOf(was), membersOf(now));
  return [{ level, object, message: `The type is \`${textOf(now)}\`; it was \`${textOf(was)}\`.` }];
}

function compareObjects(
  object: string,
  was: ReadonlyMap<string, ClientField>,
  now: ReadonlyMap<string, ClientField>,
  direction: Direction,
): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  for (const [name, field] of was) {
    const inner = `${object}.${name}`;
    const next = now.get(name);
    if (!next) changes.push({ level: "breaking", object: inner, message: "The member is no longer there." });
    else {
      changes.push(...compareTypes(inner, field.type, next.type, WRITTEN.includes(name) ? "written" : direction));
      if (field.optional && !next.optional)
        changes.push({ level: "breaking", object: inner, message: "The member is required." });
    }
  }
  for (const [name, { optional }] of now) {
    if (was.has(name)) continue;
    const isRequired = direction === "written" && !optional;
    const message = isRequired ? "The member is new and required." : "The member is new.";
    changes.push({ level: isRequired ? "breaking" : "compatible", object: `${object}.${name}`, message });
  }
  return changes;
}

function membersOf(type: ClientType): readonly ClientType[] {
  return type.kind === "union" ? type.members : [type];
}

/** A program may not expect a new value. A new literal only concerns programs that list all literals. */
function readLevel(was: readonly ClientType[], now: readonly ClientType[]): ChangeLevel {
  const added = now.filter((member) => !was.some((other) => isSame(member, other)));
  const removed = was.filter((member) => !now.some((other) => isSame(member, other)));
  // A comparison with an impossible literal does not compile.
  if (removed.some(isLiteral)) return "breaking";
  if (added.length === 0) return "compatible";
  return added.every(isLiteral) ? "dangerous" : "breaking";
}

function writtenLevel(was: readonly ClientType[], now: readonly ClientType[]): ChangeLevel {
  return was.every((member) => now.some((other) => isSame(member, other))) ? "compatible" : "breaking";
}

function isLiteral(type: ClientType): boolean {
  return type.kind === "text" && type.text.startsWith('"');
}

function isSame(one: ClientType, other: ClientType): boolean {
  return textOf(one) === textOf(other);
}

function textOf(type: ClientType): string {
  switch (type.kind) {
    case "text":
      return type.text;
    case "union":
      return type.members.map(textOf).join(" | ");
    case "tuple":
      return `[${type.items.map(textOf).join(", ")}]`;
    case "object": {
      const fields = [...type.fields].map(
        ([name, { type: field, optional }]) => `${name}${optional ? "?" : ""}: ${textOf(field)}`,
      );
      return `{ ${fields.join("; ")} }`;
    }
  }
}
