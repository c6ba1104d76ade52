import { ApiError } from "../engine/errors.ts";
import type { Codec } from "./table.ts";

const INTEGER_BITS: Readonly<Record<string, number>> = { int2: 16, int4: 32, int8: 64 };
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const NUMBERED: ReadonlySet<string> = new Set(["int2", "int4", "int8", "uuid"]);
const WORDED: ReadonlySet<string> = new Set(["text", "varchar", "bpchar", "citext"]);

/** Whether values of this type can be ids: `number` is one by its name alone, `word` only where it is a key. */
export function idKindOf(codec: Codec): "number" | "word" | null {
  const { name } = baseOf(codec);
  return NUMBERED.has(name) ? "number" : WORDED.has(name) ? "word" : null;
}

/** What a text that is no id at all means: the id of nothing, or a fault of the client. */
export type Malformed = "matches nothing" | "is refused";

const variants = new WeakMap<Codec, Map<Malformed, Codec>>();
/** An ID, and what it is of. */
const made = new WeakMap<Codec, Codec>();

/** The same type of Postgres, as GraphQL's ID. */
export function idCodecOf(codec: Codec, malformed: Malformed): Codec {
  if (made.has(codec)) return codec;
  const known = variants.get(codec)?.get(malformed);
  if (known) return known;
  const read = readerOf(baseOf(codec).name);
  const idCodec: Codec = {
    ...codec,
    // With a sign that no other codec has in its name.
    name: `${codec.name}${malformed === "is refused" ? ":strictId" : ":id"}`,
    fromPg: String,
    toPg: (value: unknown) => {
      const id = read(String(value));
      if (id === null && malformed === "is refused") throw notAnId(value);
      return id;
    },
  };
  made.set(idCodec, codec);
  variants.set(codec, (variants.get(codec) ?? new Map()).set(malformed, idCodec));
  return idCodec;
}

export function isIdCodec(codec: Codec): boolean {
  return made.has(codec);
}

/** The type that Postgres knows. */
export function withoutId(codec: Codec): Codec {
  return made.get(codec) ?? codec;
}

export function notAnId(value: unknown): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", `"${String(value).slice(0, 40)}" is not an id.`);
}

function baseOf(codec: Codec): Codec {
  return codec.domainOfCodec ? baseOf(codec.domainOfCodec) : codec;
}

/** The id as Postgres would write it, so that two spellings of one id are equal; null for what is none. */
function readerOf(type: string): (text: string) => string | null {
  const bits = INTEGER_BITS[type];
  if (bits !== undefined) return (text) => (/^-?\d{1,19}$/.test(text) ? readInteger(BigInt(text), bits) : null);
  return type === "uuid" ? (text) => (UUID.test(text) ? text.toLowerCase() : null) : (text) => text;
}

function readInteger(number: bigint, bits: number): string | null {
  return BigInt.asIntN(bits, number) === number ? String(number) : null;
}
