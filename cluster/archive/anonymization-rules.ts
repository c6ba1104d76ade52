import pg from "pg";

type RuleColumn = {
  readonly type: string;
  readonly baseType: string;
  readonly limit: number | null;
};

/** The rule of a tag `@anonymize …` for the values of one column. */
export type AnonymizationRule = {
  /** The text of the tag. */
  readonly tag: string;
  readonly isNull: boolean;
  /** True if different values stay different, and equal values stay equal in all columns. */
  readonly isUnique: boolean;
  /** An expression to try before rows are read. */
  readonly sample: string | null;
  /** Returns the expression of the new value, from the expressions of the old value and of the secret. */
  replace(value: string, secret: string): string;
};

type RuleDefinition = {
  readonly types: readonly string[];
  readonly isUnique?: boolean;
  /** The shortest limit in characters that the column may have. */
  readonly characters?: number;
  readonly replace: (value: string, digest: string, column: RuleColumn) => string;
};

const TEXTS = ["text", "varchar", "bpchar", "citext"];

const GIVEN_NAMES =
  "Ada Alan Barbara Chen Dana Edgar Fatima Grace Hedy Ivan Jean Kofi Linus Mary Niklaus Olga Priya Radia Sofia Tim";
const FAMILY_NAMES =
  "Adams Baker Costa Diaz Evans Fischer Garcia Haddad Ito Jensen Kim Lopez Moreau Novak Okafor Patel Rossi Silva Tanaka Weber";

const oneOf = (words: string, digest: string, byte: number) => {
  const list = words.split(" ");
  return `('{${list}}'::text[])[get_byte(${digest}, ${byte}) % ${list.length} + 1]`;
};
const hexOf = (digest: string) => `encode(${digest}, 'hex')`;
/** Returns SQL for a number below 2^28. */
const numberOf = (digest: string) => `('x' || substr(${hexOf(digest)}, 1, 7))::bit(28)::int`;

const RULES: Readonly<Record<string, RuleDefinition>> = {
  hash: {
    types: [...TEXTS, "uuid", "bytea"],
    isUnique: true,
    characters: 16,
    replace: (_, digest, { baseType }) =>
      baseType === "bytea" ? digest : baseType === "uuid" ? `left(${hexOf(digest)}, 32)` : `left(${hexOf(digest)}, 40)`,
  },
  email: {
    types: TEXTS,
    isUnique: true,
    characters: 36,
    replace: (_, digest) => `left(${hexOf(digest)}, 20) || '@example.invalid'`,
  },
  name: {
    types: TEXTS,
    replace: (_, digest) => `${oneOf(GIVEN_NAMES, digest, 0)} || ' ' || ${oneOf(FAMILY_NAMES, digest, 1)}`,
  },
  text: {
    types: TEXTS,
    // The pattern does not use the class of letters, which contains ASCII letters only in some collations.
    replace: (value) => `regexp_replace(${value}::text, '[^[:space:][:punct:]]', 'x', 'g')`,
  },
  date: {
    types: ["date", "timestamp", "timestamptz"],
    replace: (value, digest, { baseType }) =>
      baseType === "date"
        ? `date_trunc('year', ${value}::timestamp)::date + ${numberOf(digest)} % 365`
        : `date_trunc('year', ${value}) + ${numberOf(digest)} % (365 * 86400) * interval '1 second'`,
  },
};

/** Returns the rule, or the reason why the tag is invalid. */
export function parseAnonymizationRule(tag: string, column: RuleColumn): AnonymizationRule | string {
  const [, word = "", argument = ""] = /^(\S*)\s*(.*)$/.exec(tag) ?? [];
  const cast = (expression: string) => `(${expression})::${column.type}`;
  if (word === "fixed") {
    const literal = cast(pg.escapeLiteral(argument));
    return { tag, isNull: false, isUnique: false, sample: literal, replace: () => literal };
  }
  if (word === "null" && argument === "")
    return { tag, isNull: true, isUnique: true, sample: null, replace: () => cast("null") };
  const rule = Object.hasOwn(RULES, word) && argument === "" ? RULES[word] : undefined;
  if (!rule) return `there is no rule "${tag}": use ${Object.keys(RULES).join(", ")}, null, or fixed and a value`;
  const { types, isUnique = false, characters = 0, replace } = rule;
  if (!types.includes(column.baseType))
    return `"${word}" is for ${types.join(", ")}, not for ${column.type}: use "null", or "fixed" and a value`;
  if (TEXTS.includes(column.baseType) && column.limit !== null && column.limit < characters)
    return `"${word}" needs ${characters} characters, more than ${column.type} has: use "text", "null", or "fixed" and a value`;
  return {
    tag,
    isNull: false,
    isUnique,
    sample: null,
    replace(value: string, secret: string) {
      // Equal values need the same pseudonym.
      const text = column.baseType === "citext" ? `lower(${value}::text)` : `${value}::text`;
      const digest = `sha256(convert_to(${secret} || ${text}, 'UTF8'))`;
      return `case when ${value} is not null then ${cast(replace(value, digest, column))} end`;
    },
  };
}
