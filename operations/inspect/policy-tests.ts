import pg from "pg";
import { type Claims, INTERFACE_NAMES, type InterfaceName, parseClaims } from "#accounts/identity";
import { lineAt, splitStatements } from "#migrate";
import { applyCallerSettings, quotedName } from "#postgres/client";
import type { StatementContext } from "#postgres/statement";

/** The caller of a statement, as written after `as`. */
type TestCaller =
  /** The owner of the tables, whom no policy restricts. */
  | { readonly kind: "owner" }
  /** `anon`, or another role with the claims of its token. */
  | { readonly kind: "role"; readonly role: string; readonly claims: Claims }
  /** A user by id, e-mail address or user name. */
  | { readonly kind: "user"; readonly name: string };

export type Expectation =
  /** The number of rows that were read or changed; null: at least one. */
  | { readonly kind: "rows"; readonly count: number | null }
  | { readonly kind: "success" }
  | { readonly kind: "denied" }
  | { readonly kind: "error"; readonly code: string };

type TestStatement = {
  readonly line: number;
  readonly sql: string;
  readonly caller: TestCaller;
  readonly interfaceName: InterfaceName;
  /** The expected outcome; null for a step, whose effects stay until the end of the file. */
  readonly expectation: Expectation | null;
};

/** A fault of a test file. */
export class PolicyTestError extends Error {
  override name = "PolicyTestError";
  readonly line: number;
  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

const DIRECTIVE = /--![ \t]*([^\n]*)/g;
const TRANSACTION_CONTROL =
  /^(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+transaction)\b/i;

/** Parses a file: SQL, with `--! as`, `--! interface` and `--! expect` in comments. */
export function parsePolicyTest(text: string): TestStatement[] {
  const found = splitStatements(text);
  const directives = [...text.matchAll(DIRECTIVE)].map(({ index, 1: words }) => ({ index, words: words!.trim() }));
  const inside = directives.find(({ index }) =>
    found.some(({ start, sql }) => start < index && index < start + sql.length),
  );
  if (inside)
    throw new PolicyTestError(lineAt(text, inside.index), "The statement before this line ends without a semicolon.");
  const statements: TestStatement[] = [];
  let caller: TestCaller | null = null;
  let interfaceName: InterfaceName = "table";
  for (const item of [...found, ...directives].sort((one, other) => offsetOf(one) - offsetOf(other))) {
    const line = lineAt(text, offsetOf(item));
    if ("sql" in item) {
      if (!caller) throw new PolicyTestError(line, "Say above it who runs this statement, such as --! as anon.");
      if (TRANSACTION_CONTROL.test(item.sql))
        throw new PolicyTestError(line, "A test file is one transaction, which is rolled back: remove this statement.");
      statements.push({ line, sql: item.sql, caller, interfaceName, expectation: null });
      continue;
    }
    const [, verb = "", rest = ""] = /^(\S*)\s*(.*)$/.exec(item.words)!;
    if (verb === "as") caller = parseCaller(rest, line);
    else if (verb === "interface") interfaceName = parseInterface(rest, line);
    else if (verb === "expect") statements.push(expecting(statements.pop(), parseExpectation(rest, line), line));
    else throw new PolicyTestError(line, `"${item.words}" is none of as, interface and expect.`);
  }
  return statements;
}

function offsetOf(item: { readonly start: number } | { readonly index: number }): number {
  return "start" in item ? item.start : item.index;
}

function expecting(statement: TestStatement | undefined, expectation: Expectation, line: number): TestStatement {
  if (!statement) throw new PolicyTestError(line, "There is no statement before this expectation.");
  if (statement.expectation) throw new PolicyTestError(line, "The statement before it has an expectation already.");
  return { ...statement, expectation };
}

function parseCaller(words: string, line: number): TestCaller {
  const [, role, rest] = /^([\w$-]+)\s*(.*)$/.exec(words) ?? [];
  if (!role) throw new PolicyTestError(line, "Say who: as owner, as anon, as user NAME, or as ROLE.");
  if (role === "user") {
    if (!rest || /\s/.test(rest))
      throw new PolicyTestError(line, "Say which user: as user 7, or as user ada@example.org.");
    return { kind: "user", name: rest };
  }
  if (role === "owner" && !rest) return { kind: "owner" };
  const claims = rest ? parseClaims(rest) : {};
  if (!claims)
    throw new PolicyTestError(line, `The claims must be a JSON object on one line, such as as ${role} {"sub": "7"}.`);
  return { kind: "role", role, claims };
}

function parseInterface(word: string, line: number): InterfaceName {
  const name = INTERFACE_NAMES.find((each) => each === word);
  if (!name) throw new PolicyTestError(line, `The interface is one of ${INTERFACE_NAMES.join(", ")}.`);
  return name;
}

function parseExpectation(words: string, line: number): Expectation {
  const [, count] = /^(no|\d{1,15}) rows?$/.exec(words) ?? [];
  if (count) return { kind: "rows", count: count === "no" ? 0 : Number(count) };
  const [, code] = /^error ([0-9A-Z]{5})$/.exec(words) ?? [];
  if (code) return { kind: "error", code };
  if (words === "rows") return { kind: "rows", count: null };
  if (words === "denied" || words === "success") return { kind: words };
  throw new PolicyTestError(
    line,
    `"expect ${words}" is none of: expect 2 rows, expect rows, expect no rows, expect denied, expect error 23514, expect success.`,
  );
}

/** Formats an expectation as it is written: `2 rows`, `denied`, …. */
function formatExpectation(expectation: Expectation): string {
  switch (expectation.kind) {
    case "rows":
      return expectation.count === null ? "rows" : formatCount(expectation.count);
    case "error":
      return `error ${expectation.code}`;
    case "denied":
    case "success":
      return expectation.kind;
  }
}

function formatCount(count: number): string {
  if (count === 0) return "no rows";
  return count === 1 ? "1 row" : `${count} rows`;
}

export type PolicyTestResult = {
  readonly line: number;
  readonly sql: string;
  /** The role and, for a user, its name. */
  readonly role: string;
  readonly user: string | null;
  readonly expected: string;
  /** The failure; null if the outcome is as expected. */
  readonly failure: string | null;
};

export type PolicyTestDependencies = {
  /** A connection as the owner. */
  readonly client: pg.ClientBase;
  /** The login that requests use. */
  readonly loginRole: string;
  readonly anonRole: string;
  /** The role and settings with which a request would run. */
  readonly contextOf: (
    caller: { readonly role: string; readonly claims: Claims },
    request: { readonly interfaceName: InterfaceName; readonly path: string },
  ) => StatementContext;
};

type CallerContext = { readonly role: string | null; readonly user: string | null; readonly context: StatementContext };

/** Runs the statements in one transaction, reports each test, and rolls everything back. Throws at a step that fails. */
export async function runPolicyTest(
  statements: readonly TestStatement[],
  dependencies: PolicyTestDependencies,
  report: (result: PolicyTestResult) => void,
): Promise<void> {
  const { client } = dependencies;
  const { rows } = await client.query<{ isSuperuser: boolean }>(
    'select rolsuper as "isSuperuser" from pg_catalog.pg_roles where rolname = session_user',
  );
  // In a request, session_user is the login; only a superuser may change it here.
  const login = rows[0]!.isSuperuser ? dependencies.loginRole : null;
  await client.query("begin; set local statement_timeout = 0");
  try {
    for (const statement of statements) {
      await becomeOwner(client, login);
      const caller = await resolveCaller(statement, dependencies);
      if (statement.expectation === null) {
        await becomeCaller(client, caller, login);
        await client.query(statement.sql).catch((error) => {
          throw new PolicyTestError(statement.line, (error as Error).message);
        });
        continue;
      }
      const outcome = await tryStatement(client, statement.sql, () => becomeCaller(client, caller, login));
      // Policies do not apply to the owner, so the control run uses the owner with the caller's claims.
      const control =
        outcome.kind === "rows" && outcome.count === 0 && caller.role !== null
          ? await tryStatement(client, statement.sql, () => applyCallerSettings(client, caller.context.settings))
          : null;
      report({
        line: statement.line,
        sql: statement.sql,
        role: caller.role ?? "owner",
        user: caller.user,
        expected: formatExpectation(statement.expectation),
        failure: findFailure(statement.expectation, outcome, control),
      });
    }
  } finally {
    await client.query("rollback");
  }
}

async function resolveCaller(
  { caller, interfaceName, line }: TestStatement,
  { client, anonRole, contextOf }: PolicyTestDependencies,
): Promise<CallerContext> {
  const request = { interfaceName, path: "/" };
  try {
    if (caller.kind === "owner")
      return { role: null, user: null, context: contextOf({ role: anonRole, claims: {} }, request) };
    if (caller.kind === "role")
      return { role: caller.role, user: subjectOf(caller.claims), context: contextOf(caller, request) };
    const claims = await readUserClaims(client, caller.name);
    const role = String(claims.role ?? "authenticated");
    return { role, user: caller.name, context: contextOf({ role, claims }, request) };
  } catch (error) {
    if (error instanceof pg.DatabaseError) throw error;
    throw new PolicyTestError(line, (error as Error).message);
  }
}

function subjectOf({ sub }: Claims): string | null {
  return sub === undefined ? null : String(sub);
}

const INTEGER = /^[1-9]\d{0,17}$/;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

type AccountsRow = {
  readonly hasAccounts: boolean;
  /** True if a table of users of the application decides which users exist. */
  readonly belongToUsers: boolean;
};

const FIND_ACCOUNTS = `
  select pg_catalog.to_regprocedure('auth.find_account(text)') is not null
    and pg_catalog.to_regprocedure('auth.claims_of(bigint)') is not null as "hasAccounts",
    exists (select from pg_catalog.pg_constraint where conrelid = pg_catalog.to_regclass('auth.users') and contype = 'f') as "belongToUsers"`;

/** Reads the claims of a token that the user would get now. For an id without an account, only `sub`. */
async function readUserClaims(client: pg.ClientBase, name: string): Promise<Claims> {
  const { rows: found } = await client.query<AccountsRow>(FIND_ACCOUNTS);
  const { hasAccounts, belongToUsers } = found[0]!;
  const isId = INTEGER.test(name) || UUID.test(name);
  if (hasAccounts) {
    const { rows } = await client.query<{ claims: string | null }>(
      `select auth.claims_of(${userIdExpression(name)})::pg_catalog.text as claims`,
      [name],
    );
    const claims = parseClaims(rows[0]?.claims ?? "null");
    if (claims) return claims;
    if (belongToUsers || !isId) {
      throw new Error(`There is no user ${name}. Add one in db/seed.sql, or above by --! as owner.`);
    }
  }
  if (isId) return { sub: name, role: "authenticated" };
  throw new Error(`This database has no accounts: name user ${name} by the id in the claim "sub".`);
}

function userIdExpression(name: string): string {
  if (INTEGER.test(name)) return "$1::bigint";
  return UUID.test(name)
    ? "(select user_id from auth.users where id = $1::pg_catalog.uuid)"
    : "(auth.find_account($1)).user_id";
}

/** The workers of Citus get the role from their connection, which may change neither its role nor its session_user. */
const CHANGE_ROLE_HERE = "set local citus.propagate_set_commands = 'none'";

async function becomeOwner(client: pg.ClientBase, login: string | null): Promise<void> {
  await client.query(
    `${CHANGE_ROLE_HERE}; ${login === null ? "" : "set local session authorization default; "}set local role none`,
  );
  await applyCallerSettings(client, [
    ["request.jwt.claims", ""],
    ["request.interface", ""],
  ]);
}

async function becomeCaller(client: pg.ClientBase, caller: CallerContext, login: string | null): Promise<void> {
  if (caller.role === null) {
    const [searchPath] = caller.context.settings.filter(([name]) => name === "search_path");
    await applyCallerSettings(client, [searchPath!]);
    return;
  }
  await applyCallerSettings(client, caller.context.settings);
  const asLogin = login === null ? "" : `set local session authorization ${quotedName(login)}; `;
  await client.query(`${CHANGE_ROLE_HERE}; ${asLogin}set local role ${quotedName(caller.role)}`);
}

type TestOutcome =
  | { readonly kind: "rows"; readonly count: number }
  | { readonly kind: "error"; readonly code: string; readonly message: string };

/** Runs the statement after a preparation, and rolls both back. */
async function tryStatement(client: pg.ClientBase, sql: string, prepare: () => Promise<void>): Promise<TestOutcome> {
  await client.query("savepoint policy_test");
  try {
    await prepare();
    const { rowCount } = await client.query(sql);
    // The check runs the deferred constraints, as the commit of a request would.
    await client.query("set constraints all immediate");
    return { kind: "rows", count: rowCount ?? 0 };
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return { kind: "error", code: error.code ?? "", message: error.message };
  } finally {
    await client.query("rollback to savepoint policy_test; release savepoint policy_test");
  }
}

/** SQLSTATEs of insufficient privilege, and of functions for callers who are not signed in or not permitted. */
const DENIED: readonly string[] = ["42501", "LOGIN", "NOPER"];

function findFailure(expectation: Expectation, outcome: TestOutcome, control: TestOutcome | null): string | null {
  const found = outcome.kind === "rows" ? formatCount(outcome.count) : `error ${outcome.code} (${outcome.message})`;
  const failure = `expected ${formatExpectation(expectation)}, got ${found}`;
  switch (expectation.kind) {
    case "denied":
      return outcome.kind === "error" && DENIED.includes(outcome.code) ? null : failure;
    case "error":
      return outcome.kind === "error" && outcome.code === expectation.code ? null : failure;
    case "success":
      return outcome.kind === "rows" ? null : failure;
    case "rows": {
      if (outcome.kind === "error") return failure;
      const matches = expectation.count === null ? outcome.count > 0 : outcome.count === expectation.count;
      if (!matches) return failure;
      const isVacuous = control?.kind === "rows" && control.count === 0;
      return isVacuous
        ? "the owner gets no rows either, so this would pass without policies: add rows in db/seed.sql or by --! as owner"
        : null;
    }
  }
}
