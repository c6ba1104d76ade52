import type { PgCodecAnyScalar } from "postgraphile/@dataplan/pg";
import type { Codec } from "./table.ts";

/** The names of the scalars of domains over some types: core copies what it knows of those types, without what plugins changed of them. */
export function domainScalars(
  { allPgCodecs, inflection }: GraphileBuild.Build,
  isOverThem: (codec: Codec) => boolean,
): string[] {
  return [...allPgCodecs]
    .filter(({ domainOfCodec }) => domainOfCodec && isOverThem(domainOfCodec))
    .map((codec) => inflection.scalarCodecTypeName(codec as PgCodecAnyScalar));
}
