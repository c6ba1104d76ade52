import { createHash } from "node:crypto";

const LONGEST = 64;

/** Names that all clients accept: letters, digits, `_` and `-`, at most 64. Names that would be equal differ at their end. */
export class ToolNames {
  readonly #used = new Set<string>();

  add(wanted: string): string {
    const plain = wanted.replaceAll(/[^A-Za-z0-9_-]/g, "_");
    const isExact = plain === wanted && plain.length <= LONGEST && !this.#used.has(plain);
    const name = isExact ? plain : `${plain.slice(0, LONGEST - 9)}_${hashOf(wanted)}`;
    this.#used.add(name);
    return name;
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
