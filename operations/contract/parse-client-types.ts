/** A type of the generated TypeScript. */
export type ClientType =
  | { readonly kind: "object"; readonly fields: ReadonlyMap<string, ClientField> }
  | { readonly kind: "union"; readonly members: readonly ClientType[] }
  | { readonly kind: "tuple"; readonly items: readonly ClientType[] }
  /** Any other, compared as text: `string`, `number[]`, a reference. */
  | { readonly kind: "text"; readonly text: string };

export type ClientField = { readonly type: ClientType; readonly optional: boolean };

const START = "export type Database = ";
const TOKEN = /\s*("(?:[^"\\]|\\.)*"|[A-Za-z_$][\w$]*|[^\s\w])/y;

/** Parses the type Database that `toClientTypes` prints: the part of TypeScript that it uses. */
export function parseClientTypes(text: string): ClientType {
  const start = text.indexOf(START);
  if (start < 0) throw new Error("The snapshot has no type Database.");
  return new TypeReader(text, start + START.length).readType();
}

class TypeReader {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  readType(): ClientType {
    const members = [this.#readMember()];
    while (this.#skip("|")) members.push(this.#readMember());
    return members.length === 1 ? members[0]! : { kind: "union", members };
  }

  /** Reads a type with its suffix: `[]`, or the keys of a reference. */
  #readMember(): ClientType {
    const start = this.#at;
    let type = this.#readPrimary();
    while (this.#skip("[")) {
      while (!this.#skip("]")) this.#next();
      type = { kind: "text", text: this.#text.slice(start, this.#at).trim() };
    }
    return type;
  }

  #readPrimary(): ClientType {
    const start = this.#at;
    const token = this.#next();
    if (token === "{") return this.#readObject();
    if (token === "[") return { kind: "tuple", items: this.#readList("]") };
    if (token === "(") {
      const type = this.readType();
      this.#skip(")");
      return type;
    }
    if (this.#skip("<")) this.#readList(">");
    return { kind: "text", text: this.#text.slice(start, this.#at).trim() };
  }

  #readList(end: string): ClientType[] {
    const items: ClientType[] = [];
    while (!this.#skip(end)) {
      items.push(this.readType());
      this.#skip(",");
    }
    return items;
  }

  #readObject(): ClientType {
    const fields = new Map<string, ClientField>();
    while (!this.#skip("}")) {
      const token = this.#next();
      // `[_ in never]: never` has no field.
      const isMapped = token === "[";
      while (isMapped && !this.#skip("]")) this.#next();
      const optional = this.#skip("?");
      this.#skip(":");
      const type = this.readType();
      this.#skip(";");
      if (!isMapped) fields.set(token.startsWith('"') ? JSON.parse(token) : token, { type, optional });
    }
    return { kind: "object", fields };
  }

  #peek(): string {
    TOKEN.lastIndex = this.#at;
    const [, token] = TOKEN.exec(this.#text) ?? [];
    if (token === undefined) throw new Error("The types of the snapshot end too early.");
    return token;
  }

  #next(): string {
    const token = this.#peek();
    this.#at = TOKEN.lastIndex;
    return token;
  }

  #skip(token: string): boolean {
    if (this.#peek() !== token) return false;
    this.#at = TOKEN.lastIndex;
    return true;
  }
}
