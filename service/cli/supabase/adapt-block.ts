import { type AdaptedStatement, adaptServiceStatement } from "./adapt-statement.ts";

const BLOCK_START = /^do\b[^$']*\$\w*\$/i;
const COMMENT_OR_STRING =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\be'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1/gi;

/** The block with spaces for what its comments and strings contain; offsets stay the same. */
function maskBlock(block: string): string {
  const start = BLOCK_START.exec(block)?.[0] ?? "";
  const body = block.slice(start.length).replace(COMMENT_OR_STRING, (text) => {
    const isComment = text.startsWith("--") || text.startsWith("/*");
    return isComment ? " ".repeat(text.length) : `'${" ".repeat(text.length - 2)}'`;
  });
  return start + body;
}

/** Replaces statements of a block of PL/pgSQL, which the pattern finds where comments and strings are masked. */
export async function replaceInBlock(
  block: string,
  pattern: RegExp,
  adapt: (statement: string) => Promise<AdaptedStatement | null>,
): Promise<AdaptedStatement> {
  const changes: string[] = [];
  let sql = "";
  let end = 0;
  for (const { index, 0: masked } of maskBlock(block).matchAll(pattern)) {
    const text = block.slice(index, index + masked.length);
    const adapted = await adapt(text);
    if (adapted === null) continue;
    sql += block.slice(end, index) + adapted.sql;
    end = index + text.length;
    changes.push(...adapted.changes);
  }
  return { sql: sql + block.slice(end), changes };
}

/** A statement that may create a role or add a table to a publication, also one in a string that is executed. */
const REPEATED =
  /(?<=(?:\b(?:begin|then|else|loop)|;)\s*)(?:execute\b|create\s+(?:role|user|group)\b|alter\s+publication\b)[^;]*/gi;
const REPEATABLE =
  /^(?:execute\s+(?:(?:pg_catalog\s*\.\s*)?format\s*\(\s*)?(?:'|\$\w*\$)\s*)?(?:create\s+(?:role|user|group)\b|alter\s+publication\s+"?supabase_realtime"?\s+add\b)/i;

/** A block that creates what exists here: roles belong to the cluster, and each new table is in the publication. */
export async function adaptRepeats(statement: string): Promise<AdaptedStatement | null> {
  if (!/^do\b/i.test(statement)) return null;
  const adapted = await replaceInBlock(statement, REPEATED, async (text) =>
    REPEATABLE.test(text)
      ? {
          sql: `begin ${text.trimEnd()}; exception when duplicate_object then null; end`,
          changes: ["goes on where a role exists, or a table is in the publication supabase_realtime"],
        }
      : null,
  );
  return adapted.changes.length === 0 ? null : adapted;
}

/** A statement of a block, also one in a string that is executed as it stands, where strings are masked. */
const IN_BLOCK =
  /(?<=(?:\b(?:begin|then|else|loop)|;)\s*)(?:execute\s+' *'(?=\s*;)|(?:create|alter|drop|grant|revoke|comment)\b[^;]*)/gi;
const EXECUTED = /^execute\s+(?:'((?:[^']|'')*)'|(\$\w*\$)([\s\S]*)\2)$/i;

/** Adapts the statements of a block that concern Supabase's services: changes or removes them like statements outside of blocks. */
export async function adaptInBlock(statement: string): Promise<AdaptedStatement | null> {
  if (!/^do\b/i.test(statement)) return null;
  const adapted = await replaceInBlock(statement, IN_BLOCK, async (text) => {
    const [isExecuted, quoted, , dollarQuoted] = EXECUTED.exec(text) ?? [];
    const inner = (dollarQuoted ?? quoted?.replaceAll("''", "'") ?? text).trim().replace(/\s*;$/, "");
    const found = adaptServiceStatement(inner);
    if (found === null) return null;
    if (found.sql === "") return { sql: "null", changes: found.changes };
    return { sql: isExecuted ? `execute $statement$${found.sql}$statement$` : found.sql, changes: found.changes };
  });
  return adapted.changes.length === 0 ? null : adapted;
}
