import type { DataType } from "../../engine/catalog/types.ts";

/** Below, at or above zero, as the one is less than, equal to or greater than the other. Both as Postgres writes them. */
export type Compare = (one: string, other: string) => number;

const COMPARISONS: Readonly<Record<string, Compare>> = {
  int2: compareDecimals,
  int4: compareDecimals,
  int8: compareDecimals,
  numeric: compareDecimals,
  float4: compareFloats,
  float8: compareFloats,
};

/** How values of a type are ordered; null where only Postgres knows. */
export function numberOrder({ schema, name }: DataType): Compare | null {
  return schema === "pg_catalog" ? (COMPARISONS[name] ?? null) : null;
}

/** Postgres takes NaN for equal to itself, and for greater than everything else. */
function compareFloats(one: string, other: string): number {
  const [left, right] = [Number(one), Number(other)];
  if (Number.isNaN(left) || Number.isNaN(right)) return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
  return left === right ? 0 : left < right ? -1 : 1;
}

const SMALL = 15;
const DECIMAL = /^(-?)0*(\d*)(?:\.(\d*?)0*)?$/;

function compareDecimals(one: string, other: string): number {
  // Such numbers JavaScript holds; so does it the two infinities and NaN.
  if (one.length <= SMALL && other.length <= SMALL) return compareFloats(one, other);
  const [left, right] = [DECIMAL.exec(one), DECIMAL.exec(other)];
  if (!left || !right) return compareFloats(one, other);
  const [leftSign, rightSign] = [signOf(left), signOf(right)];
  return leftSign === rightSign ? leftSign * compareSizes(left, right) : leftSign - rightSign;
}

function signOf([, minus, whole, fraction = ""]: RegExpExecArray): number {
  if (whole === "" && fraction === "") return 0;
  return minus === "" ? 1 : -1;
}

function compareSizes(
  [, , one = "", oneFraction = ""]: RegExpExecArray,
  [, , other = "", otherFraction = ""]: RegExpExecArray,
) {
  if (one.length !== other.length) return one.length - other.length;
  const [left, right] = [one + oneFraction, other + otherFraction];
  return left === right ? 0 : left < right ? -1 : 1;
}
