import type { PgResourceParameter } from "@dataplan/pg";
import type { PgAttribute, PgClass } from "graphile-build-pg/pg-introspection";
import { ApiError } from "#runtime";
import { baseCodecOf } from "./codecs.ts";
import type { Codec } from "./table.ts";

const INTEGER_BITS: Readonly<Record<string, number>> = { int2: 16, int4: 32, int8: 64 };
const UUID_TEXT = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const NUMBER_ID_TYPES: ReadonlySet<string> = new Set(["int2", "int4", "int8", "uuid"]);
const TEXT_ID_TYPES: ReadonlySet<string> = new Set(["text", "varchar", "bpchar", "citext"]);

const ID_NAME = /(^|_)id$/i;

export const IdScalarPlugin: GraphileConfig.Plugin = {
  name: "IdScalarPlugin",
  description: "Keys, foreign keys and columns named id are ID",
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { pgClass, pgAttribute, attribute }) {
        const kind = idKindOf(attribute.codec);
        const isId =
          kind === "number"
            ? ID_NAME.test(pgAttribute.attname) || isSingleColumnKey(pgClass, pgAttribute)
            : isSingleColumnKey(pgClass, pgAttribute);
        if (kind && isId) attribute.codec = toIdCodec(attribute.codec, "matches nothing");
      },
      pgProcedures_functionResourceOptions(_info, { functionResourceOptions }) {
        functionResourceOptions.parameters = functionResourceOptions.parameters.map(withIdCodec);
      },
      pgProcedures_PgResourceOptions(_info, { resourceOptions }) {
        if (resourceOptions.parameters) resourceOptions.parameters = resourceOptions.parameters.map(withIdCodec);
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

const idCodecs = new WeakMap<Codec, Map<MalformedIdPolicy, Codec>>();
/** The codec that an ID codec was made from. */
const originalCodecs = new WeakMap<Codec, Codec>();

/** The only column of a primary key, or of a foreign key. */
function isSingleColumnKey(pgClass: PgClass, { attnum }: PgAttribute): boolean {
  return pgClass
    .getConstraints()
    .some(
      ({ contype, conkey }) => (contype === "p" || contype === "f") && conkey?.length === 1 && conkey[0] === attnum,
    );
}

/**
 * A function with a required id defines itself how it treats an unknown row. For an optional id, a malformed value must not
 * become "not given".
 */
function withIdCodec(parameter: PgResourceParameter): PgResourceParameter {
  const codec: Codec = parameter.codec;
  if (idKindOf(codec) !== "number" || !ID_NAME.test(parameter.name ?? "")) return parameter;
  return { ...parameter, codec: toIdCodec(codec, parameter.optional ? "is refused" : "matches nothing") };
}

/** The kind if values of the type can be ids: `number` by the column's name or as a key, `word` only as a key. Null otherwise. */
export function idKindOf(codec: Codec): "number" | "word" | null {
  const { name } = baseCodecOf(codec);
  return NUMBER_ID_TYPES.has(name) ? "number" : TEXT_ID_TYPES.has(name) ? "word" : null;
}

/** How a malformed id is handled. */
type MalformedIdPolicy = "matches nothing" | "is refused";

/** A codec of the same Postgres type, shown as GraphQL's ID. */
export function toIdCodec(codec: Codec, malformed: MalformedIdPolicy): Codec {
  if (originalCodecs.has(codec)) return codec;
  const existing = idCodecs.get(codec)?.get(malformed);
  if (existing) return existing;
  const parseId = idParserOf(baseCodecOf(codec).name);
  const idCodec: Codec = {
    ...codec,
    // A colon occurs in no other codec's name.
    name: `${codec.name}${malformed === "is refused" ? ":strictId" : ":id"}`,
    fromPg: String,
    toPg: (value: unknown) => {
      const id = parseId(String(value));
      if (id === null && malformed === "is refused") throw invalidIdError(value);
      return id;
    },
  };
  originalCodecs.set(idCodec, codec);
  idCodecs.set(codec, (idCodecs.get(codec) ?? new Map()).set(malformed, idCodec));
  return idCodec;
}

export function isIdCodec(codec: Codec): boolean {
  return originalCodecs.has(codec);
}

/** The codec before `toIdCodec`. */
export function toOriginalCodec(codec: Codec): Codec {
  return originalCodecs.get(codec) ?? codec;
}

export function invalidIdError(value: unknown): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", `"${String(value).slice(0, 40)}" is not a valid id.`);
}

/** The value to write. A malformed id matches nothing in a filter, but must not be written as null. */
export function validIdOf(value: unknown, codec: Codec): unknown {
  if (value != null && isIdCodec(codec) && codec.toPg(value) === null) throw invalidIdError(value);
  return value;
}

/** Parses an id to Postgres's spelling, so that equal ids are equal texts; null when malformed. */
function idParserOf(type: string): (text: string) => string | null {
  const bits = INTEGER_BITS[type];
  if (bits !== undefined) return (text) => (/^-?\d{1,19}$/.test(text) ? parseIntegerId(BigInt(text), bits) : null);
  return type === "uuid" ? (text) => (UUID_TEXT.test(text) ? text.toLowerCase() : null) : (text) => text;
}

function parseIntegerId(number: bigint, bits: number): string | null {
  return BigInt.asIntN(bits, number) === number ? String(number) : null;
}
