import { CHANGE_LEVELS, type ChangeLevel, type SurfaceChange } from "./contract.ts";
import type { TypeShape } from "./read-table-interface.ts";

/** Types that take all values of another type and have the same form in JSON; but a client may get larger numbers. */
const WIDER: Readonly<Record<string, readonly string[]>> = {
  smallint: ["integer", "bigint", "numeric"],
  integer: ["bigint", "numeric"],
  bigint: ["numeric"],
  real: ["double precision"],
};
const TEXTS = ["text", "character varying"];

const MODIFIER = /\((\d+)(?:,(\d+))?\)/;

/** Returns the changes for clients when the type of a column, an argument or a result changes. */
export function compareTypes(object: string, was: TypeShape, now: TypeShape): SurfaceChange[] {
  const isSameBase = was.base === now.base || (TEXTS.includes(was.base) && TEXTS.includes(now.base));
  if (!isSameBase) return [changeOf(object, was, now, WIDER[was.base]?.includes(now.base) ? "dangerous" : "breaking")];
  return [
    ...compareModifiers(object, was, now),
    ...compareValues(object, was, now),
    ...compareAttributes(object, was, now),
  ];
}

function changeOf(object: string, was: TypeShape, now: TypeShape, level: ChangeLevel): SurfaceChange {
  return { level, object, message: `The type is ${now.name}; it was ${was.name}.` };
}

/** Compares `varchar(20)` and the like: a longer limit takes all earlier values. Another scale rounds. */
function compareModifiers(object: string, was: TypeShape, now: TypeShape): SurfaceChange[] {
  const [, size, scale] = MODIFIER.exec(was.name) ?? [];
  const [, sizeNow, scaleNow] = MODIFIER.exec(now.name) ?? [];
  if (size === sizeNow && scale === scaleNow) return [];
  const isWider =
    sizeNow === undefined || (size !== undefined && Number(sizeNow) >= Number(size) && scale === scaleNow);
  return [changeOf(object, was, now, isWider ? "compatible" : "breaking")];
}

function compareValues(
  object: string,
  { values: was = [] }: TypeShape,
  { values: now = [] }: TypeShape,
): SurfaceChange[] {
  return [
    ...was
      .filter((value) => !now.includes(value))
      .map((value) => ({ level: "breaking", object, message: `The value ${value} is no longer there.` }) as const),
    ...now
      .filter((value) => !was.includes(value))
      .map((value) => ({ level: "dangerous", object, message: `The value ${value} is new.` }) as const),
  ];
}

function compareAttributes(
  object: string,
  { attributes: was = {} }: TypeShape,
  { attributes: now = {} }: TypeShape,
): SurfaceChange[] {
  const kept = Object.entries(was).flatMap(([name, type]): SurfaceChange[] => {
    const next = now[name];
    if (next) return compareTypes(`${object}.${name}`, type, next);
    return [{ level: "breaking", object: `${object}.${name}`, message: "The field is no longer there." }];
  });
  const added = Object.keys(now).filter((name) => !was[name]);
  return [
    ...kept,
    ...added.map(
      (name) => ({ level: "compatible", object: `${object}.${name}`, message: "The field is new." }) as const,
    ),
  ];
}

/** Returns the index of the strongest level; -1 if there is no change. */
export function strongest(changes: readonly SurfaceChange[]): number {
  return Math.max(-1, ...changes.map(({ level }) => CHANGE_LEVELS.indexOf(level)));
}
