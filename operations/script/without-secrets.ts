import { splitStatements } from "#migrate";

const SECRET_NAMES = /passw|passphrase|secret|token|api_?key|private_?key|credential|crypt|:\/\/[^\s/'"]*:[^\s/'"]*@/i;
const FIRST_LITERAL = /(?:\b[eubx]&?)?'|\$\w*\$/i;

/** The statements for a log. Of those that seem to contain a secret, everything from the first literal on is left out. */
export function withoutSecrets(script: string): string {
  return splitStatements(script)
    .map(({ sql }) => {
      const literal = SECRET_NAMES.test(sql) ? sql.search(FIRST_LITERAL) : -1;
      return literal < 0 ? sql : `${sql.slice(0, literal)}…`;
    })
    .join(";\n");
}

/** The same, cut to a length. Half of a character at the end would be no text that Postgres stores. */
export function toLoggedSql(script: string, maxLength: number): string {
  return withoutSecrets(script).slice(0, maxLength).toWellFormed();
}
