import type {} from "postgraphile";
import { TYPES } from "postgraphile/@dataplan/pg";
import { GraphQLError, Kind } from "postgraphile/graphql";
import { oncePer } from "../engine/once-per.ts";
import { domainScalars } from "./domain-scalars.ts";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OidScalarPlugin: true;
    }
  }
}

const LARGEST = 2 ** 32 - 1;

export const OidScalarPlugin: GraphileConfig.Plugin = {
  name: "OidScalarPlugin",
  description: "An oid is a number without a sign, which is more than core takes",
  schema: {
    hooks: {
      GraphQLScalarType: (config, build) =>
        namesOf(build).has(config.name)
          ? {
              ...config,
              serialize: Number,
              parseValue: read,
              parseLiteral: (node) => read(node.kind === Kind.INT || node.kind === Kind.STRING ? node.value : null),
            }
          : config,
    },
  },
};

const namesOf = oncePer(
  (build: GraphileBuild.Build): ReadonlySet<string> =>
    new Set([build.inflection.builtin("Oid"), ...domainScalars(build, isOid)]),
);

function isOid(codec: Codec): boolean {
  return codec === TYPES.oid || Boolean(codec.domainOfCodec && isOid(codec.domainOfCodec));
}

function read(value: unknown): number {
  const oid = typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : Number.NaN;
  if (Number.isInteger(oid) && oid >= 0 && oid <= LARGEST) return oid;
  throw new GraphQLError(`An oid is a whole number from 0 to ${LARGEST}.`);
}
