import { splitStatements } from "#migrate";

const SECRET_NAMES = /passw|passphrase|secret|token|api_?key|private_?key|credential|crypt|:\/\/[^\s/'"]*:[^\s/'"]*@/i;
const FIRST_LITERAL = /(?:\b[eubx]&?)?'|\$\w*\$/i;

/** Returns the statements for a log. Cuts a statement that seems to contain a secret at its first literal. */
export function withoutSecrets(script: string): string {
  return splitStatements(script)
    .map(({ sql }) => {
      const literal = SECRET_NAMES.test(sql) ? sql.search(FIRST_LITERAL) : -1;
      return literal < 0 ? sql : `${sql.slice(0, literal)}…`;
    })
    .join(";\n");
}

/** Returns the same text, cut to a length. Replaces half of a character at the end, because Postgres does not store it. */
export function toLoggedSql(script: string, maxLength: number): string {
  return withoutSecrets(script).slice(0, maxLength).toWellFormed();
}
