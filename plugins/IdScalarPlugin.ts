import type {} from "postgraphile";
import type { PgResourceParameter } from "postgraphile/@dataplan/pg";
import type { PgAttribute, PgClass } from "postgraphile/graphile-build-pg/pg-introspection";
import { idCodecOf, idKindOf, isIdCodec } from "./id-codec.ts";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      IdScalarPlugin: true;
    }
  }
}

const ID_NAME = /(^|_)id$/i;

export const IdScalarPlugin: GraphileConfig.Plugin = {
  name: "IdScalarPlugin",
  description: "Keys, what refers to them, and what is called an id are ID",
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { pgClass, pgAttribute, attribute }) {
        const kind = idKindOf(attribute.codec);
        const isId =
          kind === "number"
            ? ID_NAME.test(pgAttribute.attname) || isKey(pgClass, pgAttribute)
            : isKey(pgClass, pgAttribute);
        if (kind && isId) attribute.codec = idCodecOf(attribute.codec, "matches nothing");
      },
      pgProcedures_functionResourceOptions(_info, { functionResourceOptions }) {
        functionResourceOptions.parameters = functionResourceOptions.parameters.map(withId);
      },
      pgProcedures_PgResourceOptions(_info, { resourceOptions }) {
        if (resourceOptions.parameters) resourceOptions.parameters = resourceOptions.parameters.map(withId);
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of build.allPgCodecs) {
            if (isIdCodec(codec)) build.setGraphQLTypeForPgCodec(codec, ["input", "output"], "ID");
          }
          return _;
        },
      },
    },
  },
};

/** The only column of a primary key, or of a foreign key (which then refers to such). */
function isKey(pgClass: PgClass, { attnum }: PgAttribute): boolean {
  return pgClass
    .getConstraints()
    .some(
      ({ contype, conkey }) => (contype === "p" || contype === "f") && conkey?.length === 1 && conkey[0] === attnum,
    );
}

/**
 * A function that needs an id decides itself what no row at all means. Where it could do without, a malformed id must not
 * become "none was given".
 */
function withId(parameter: PgResourceParameter): PgResourceParameter {
  const codec: Codec = parameter.codec;
  if (idKindOf(codec) !== "number" || !ID_NAME.test(parameter.name ?? "")) return parameter;
  return { ...parameter, codec: idCodecOf(codec, parameter.optional ? "is refused" : "matches nothing") };
}
