type Inflection = GraphileBuild.Inflection;

/** Inflectors that make a text of a text, and nothing else. A schema has them spell the same few words over and over. */
const SPELLINGS = ["camelCase", "upperCamelCase", "coerceToGraphQLName", "pluralize", "singularize"] as const;

/** The same inflection, which works out each spelling once. */
export function rememberNames(inflection: Inflection): Inflection {
  for (const name of SPELLINGS) {
    const spell = inflection[name] as (text: string) => string;
    const known = new Map<string, string>();
    inflection[name] = (text: string) => {
      const before = known.get(text);
      if (before !== undefined) return before;
      const spelling = spell(text);
      known.set(text, spelling);
      return spelling;
    };
  }
  return inflection;
}
