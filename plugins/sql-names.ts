import type { PgProc, PgType } from "postgraphile/graphile-build-pg/pg-introspection";
import { quotedName } from "../engine/quoted-name.ts";

const UNQUOTED = /^[a-z_][a-z0-9_$]*$/;

/** `public.things`, as somebody would write it in SQL. */
export function sqlName(...parts: readonly string[]): string {
  return parts.map((part) => (UNQUOTED.test(part) ? part : quotedName(part))).join(".");
}

/** `public.search(text, integer)` */
export function signatureOf(proc: PgProc): string {
  const types = inputTypesOf(proc).map(typeName).join(", ");
  return `${sqlName(proc.getNamespace()?.nspname ?? "", proc.proname)}(${types})`;
}

export function inputTypesOf(proc: PgProc): PgType[] {
  return proc
    .getArguments()
    .filter(({ isIn, isVariadic }) => isIn || isVariadic)
    .map(({ type }) => type);
}

export function typeName(type: PgType): string {
  const element = type.typcategory === "A" ? type.getElemType() : undefined;
  if (element) return `${typeName(element)}[]`;
  const schema = type.getNamespace()?.nspname ?? "pg_catalog";
  return schema === "pg_catalog" ? sqlName(type.typname) : sqlName(schema, type.typname);
}
