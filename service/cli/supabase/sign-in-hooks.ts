import pg from "pg";

/** A hook of `[auth.hook.*]` in config.toml. */
export type ConfiguredHook = { readonly isEnabled: boolean; readonly address: string };

type ImportedHooks = {
  readonly settings: Readonly<Record<string, string>>;
  /** SQL that runs after the project's migrations, which create the functions; null if there is none. */
  readonly migration: string | null;
  readonly changes: readonly string[];
};

type ImportHook = (hook: ConfiguredHook, migrations: readonly string[]) => Partial<ImportedHooks>;

export type SqlFunction = { readonly schema: string; readonly name: string };

/** The name that Supabase's documentation gives to the function of the hook. */
const CLAIMS_FUNCTION =
  /create\s+(?:or\s+replace\s+)?function\s+(?:"?(\w+)"?\s*\.\s*)?"?(custom_access_token_hook)"?\s*\(/gi;
const SQL_ADDRESS = /^pg-functions:\/\/[^/]*\/([^/]+)\/([^/]+)$/;

const HOOKS: Readonly<Record<string, ImportHook>> = {
  custom_access_token({ address }, migrations) {
    const hook = toHookFunction(address);
    if (hook === null)
      return { changes: [`config.toml: the hook ${address} is not called; CLAIMS_HOOK names SQL functions only`] };
    return isCreated(hook, migrations)
      ? useClaimsHook(hook)
      : { changes: [`${describeMissing(hook)}: create the function, and set CLAIMS_HOOK=${nameOf(hook)}`] };
  },
  before_user_created({ address }, migrations) {
    const hook = toHookFunction(address);
    if (hook === null) return { changes: [`config.toml: the hook ${address} is not called; only SQL functions are`] };
    if (!isCreated(hook, migrations))
      return {
        changes: [`${describeMissing(hook)}: create the function in a migration of supabase/, and import it again`],
      };
    const names = [hook.schema, hook.name].map(pg.escapeLiteral).join(", ");
    const migration =
      "create trigger _060_before_user_created before insert on auth.users\n" +
      `  for each row when (NEW.instance_id is null) execute function supabase_auth.tg_users__call_hook(${names});`;
    return { migration, changes: [`a trigger on auth.users calls the hook ${hook.schema}.${hook.name}`] };
  },
  send_sms: ({ address }) => ({
    changes: [
      /^https?:/.test(address)
        ? `config.toml: set SMS_WEBHOOK_URL=${address} and SMS_WEBHOOK_SECRET for the hook send_sms`
        : "config.toml: the hook send_sms is not called here; SMS_WEBHOOK_URL sends text messages",
    ],
  }),
};

/** Imports the hooks. A project that is configured in the dashboard has the token hook's function in its migrations, but not in config.toml. */
export function importHooks(
  hooks: Readonly<Record<string, ConfiguredHook>>,
  migrations: readonly string[],
): ImportedHooks {
  const imported = Object.entries(hooks)
    .filter(([, { isEnabled }]) => isEnabled)
    .map(
      ([name, hook]) =>
        HOOKS[name]?.(hook, migrations) ?? { changes: [`config.toml: the hook ${name} is not called here`] },
    );
  const created = hooks.custom_access_token?.isEnabled ? null : findCreatedHook(migrations);
  if (created !== null)
    imported.push(
      hooks.custom_access_token
        ? { changes: [`config.toml disables the hook; to use it, set CLAIMS_HOOK=${created.schema}.${created.name}`] }
        : useClaimsHook(created),
    );
  return {
    settings: Object.assign({}, ...imported.map(({ settings }) => settings)),
    migration: imported.find(({ migration }) => migration)?.migration ?? null,
    changes: imported.flatMap(({ changes = [] }) => changes),
  };
}

function useClaimsHook({ schema, name }: SqlFunction): Partial<ImportedHooks> {
  return {
    settings: { CLAIMS_HOOK: `${schema}.${name}` },
    changes: [`package.json: set CLAIMS_HOOK to ${schema}.${name}, which adds claims to tokens`],
  };
}

/** Describes a hook whose function is missing: if it were called, each sign-up would fail. */
function describeMissing(hook: SqlFunction): string {
  return `config.toml: the hook ${nameOf(hook)} is not called, because no migration creates it`;
}

function nameOf({ schema, name }: SqlFunction): string {
  return `${schema}.${name}`;
}

const CREATED_FUNCTION =
  /\bcreate\s+(?:or\s+replace\s+)?function\s+(?:("(?:[^"]|"")+"|\w+)\s*\.\s*)?("(?:[^"]|"")+"|\w+)\s*\(/gi;

/** True if a migration creates the function. Functions without a schema may be in any schema. */
function isCreated(hook: SqlFunction, migrations: readonly string[]): boolean {
  const toName = (text: string) =>
    text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text.toLowerCase();
  return migrations.some((sql) =>
    [...sql.matchAll(CREATED_FUNCTION)].some(
      ([, schema, name]) => toName(name!) === hook.name && (schema === undefined || toName(schema) === hook.schema),
    ),
  );
}

/** The SQL function of a hook's address; null for another address. */
export function toHookFunction(address: string): SqlFunction | null {
  const [, schema, name] = SQL_ADDRESS.exec(address) ?? [];
  return schema && name ? { schema, name } : null;
}

function findCreatedHook(migrations: readonly string[]): SqlFunction | null {
  const last = migrations.flatMap((sql) => [...sql.matchAll(CLAIMS_FUNCTION)]).at(-1);
  return last ? { schema: last[1] ?? "public", name: last[2]! } : null;
}
