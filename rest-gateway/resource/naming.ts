/** How a version spells what SQL calls by other names. */
export type Naming = (sqlName: string) => string;

/** Version 1 has the columns' own names, every later one camelCase. */
export function namingOf(version: number): Naming {
  return version === 1 ? asInSql : toCamelCase;
}

/** `order_lines` and `"Order Lines"` are at `/order-lines`. What is an address name already stays as it is. */
export function toAddressName(sqlName: string): string {
  // In this order: in lower case some letters become two characters, of which one is no letter.
  return sqlName.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
}

function asInSql(name: string): string {
  return name;
}

/** `created_at` -> `createdAt`; what begins with an underscore keeps that. */
function toCamelCase(name: string): string {
  return name.replace(/(?<=[a-zA-Z0-9])_+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
