import { TYPES } from "postgraphile/@dataplan/pg";
import { GraphQLError, Kind } from "postgraphile/graphql";
import { memoizePerObject } from "../engine/cache/memoize.ts";
import { domainScalarNames } from "./graphql-types.ts";
import type { Codec } from "./table.ts";

export const BinaryScalarPlugin: GraphileConfig.Plugin = {
  name: "BinaryScalarPlugin",
  description: "Bytes come as Base64, and what is none is refused; core would write the part of it that it can read",
  schema: {
    hooks: {
      GraphQLScalarType(config, { inflection }) {
        if (config.name !== inflection.builtin("Base64EncodedBinary")) return config;
        return {
          ...config,
          parseValue: readBytes,
          parseLiteral: (node) => readBytes(node.kind === Kind.STRING ? node.value : undefined),
        };
      },
    },
  },
};

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OidScalarPlugin: true;
    }
  }
}

const MAX_OID = 2 ** 32 - 1;

export const OidScalarPlugin: GraphileConfig.Plugin = {
  name: "OidScalarPlugin",
  description: "An oid is a number without a sign, which is more than core takes",
  schema: {
    hooks: {
      GraphQLScalarType: (config, build) =>
        oidScalarNames(build).has(config.name)
          ? {
              ...config,
              serialize: Number,
              parseValue: readOid,
              parseLiteral: (node) => readOid(node.kind === Kind.INT || node.kind === Kind.STRING ? node.value : null),
            }
          : config,
    },
  },
};

const oidScalarNames = memoizePerObject(
  (build: GraphileBuild.Build): ReadonlySet<string> =>
    new Set([build.inflection.builtin("Oid"), ...domainScalarNames(build, isOidCodec)]),
);

function isOidCodec(codec: Codec): boolean {
  return codec === TYPES.oid || Boolean(codec.domainOfCodec && isOidCodec(codec.domainOfCodec));
}

function readOid(value: unknown): number {
  const oid = typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : Number.NaN;
  if (Number.isInteger(oid) && oid >= 0 && oid <= MAX_OID) return oid;
  throw new GraphQLError(`An oid is a whole number from 0 to ${MAX_OID}.`);
}

declare global {
  namespace GraphileConfig {
    interface Plugins {
      BinaryScalarPlugin: true;
    }
  }
}

function readBytes(value: unknown): Buffer {
  if (typeof value === "string") {
    const bytes = Buffer.from(value, "base64");
    const digits = value.replace(/[\s=]/g, "").length;
    if (digits % 4 !== 1 && bytes.length === Math.floor((digits * 3) / 4)) return bytes;
  }
  throw new GraphQLError("Bytes are written in Base64.");
}
