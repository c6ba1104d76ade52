import { type Caller, isReadOnlyAccess } from "#accounts/identity";
import { HttpError, toHttpError } from "#http";
import type { Database } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import type { ChannelTopic } from "./broadcast.ts";

export type ChannelExtension = "broadcast" | "presence";
/** The kinds of messages that a caller may receive in a private channel. */
export type TopicReadAccess = Readonly<Record<ChannelExtension, boolean>>;

export type TopicAuthorization = {
  readAccess(caller: Caller, topic: string): Promise<TopicReadAccess>;
  /** Returns true if the caller may send: policies decide in private channels, and applications that may only read send nowhere. */
  mayWrite(caller: Caller, topic: ChannelTopic, extension: ChannelExtension): Promise<boolean>;
};

type TopicAuthorizationOptions = {
  readonly database: Pick<Database, "run">;
  readonly contextOf: (caller: Caller) => StatementContext;
};

type MessageCommand = "select" | "insert";

// Runs as the caller: `row_security_active`, `has_…_privilege` and `pg_has_role` answer for its role. A policy without a condition
// permits nothing, and one that is restrictive forbids nothing.
const POLICIES = `
  select pg_catalog.has_schema_privilege(c.relnamespace, 'usage') and not exists (
      select from pg_catalog.pg_attribute a
      where a.attrelid = c.oid and a.attname in ('topic', 'extension') and not pg_catalog.has_column_privilege(c.oid, a.attnum, $1)
    ),
    pg_catalog.row_security_active(c.oid), p.permissive, p.restrictive
  from pg_catalog.pg_class c cross join lateral (
    select pg_catalog.string_agg('(' || condition || ')', ' or ') filter (where polpermissive) as permissive,
      pg_catalog.string_agg('(' || condition || ')', ' and ') filter (where not polpermissive) as restrictive
    from (
      select polpermissive, pg_catalog.pg_get_expr(
        case $1 when 'insert' then coalesce(polwithcheck, polqual) else polqual end, polrelid) as condition
      from pg_catalog.pg_policy
      where polrelid = c.oid and polcmd in ('*', case $1 when 'insert' then 'a' else 'r' end)
        and exists (select from pg_catalog.unnest(polroles) role where role = 0 or pg_catalog.pg_has_role(role, 'usage'))
      order by polname
    ) as policy
  ) as p
  where c.relname = 'messages'
    and c.relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'realtime')`;

/** The condition of a role's policies, as Postgres prints it, or its value where that is the same for all messages. */
type PolicyCondition = boolean | { readonly sql: string };

/**
 * Applies the policies on `realtime.messages` to messages that are not written: nobody needs a privilege to insert them, and the table of
 * Supabase, which is partitioned by day, needs no partition for today.
 */
export function makeTopicAuthorization({ database, contextOf }: TopicAuthorizationOptions): TopicAuthorization {
  const contextForTopic = (caller: Caller, topic: string): StatementContext => {
    const { role, settings } = contextOf(caller);
    const { sub } = caller.claims;
    return {
      role,
      settings: [
        // Changes that a policy makes are rolled back, so a read-only role may receive and send too, and a read-only application may receive.
        ...settings.filter(([name]) => name !== "transaction_read_only"),
        ["realtime.topic", topic],
        ["request.jwt.claim.sub", typeof sub === "string" ? sub : ""],
        ["request.jwt.claim.role", role],
      ],
    };
  };

  const allowedExtensions = async (
    caller: Caller,
    topic: string,
    command: MessageCommand,
    extensions: readonly ChannelExtension[],
  ): Promise<readonly ChannelExtension[]> => {
    const context = contextForTopic(caller, topic);
    const run = (statement: Statement) => database.run(context, statement, { rollback: true });
    try {
      const condition = toPolicyCondition((await run({ text: POLICIES, values: [command] })).rows);
      if (typeof condition === "boolean") return condition ? extensions : [];
      const { rows } = await run(buildCheck(condition.sql, topic, extensions));
      return extensions.filter((_, at) => rows[at]?.[0] === "t");
    } catch (error) {
      const { status } = toHttpError(error);
      if (error instanceof HttpError || status >= 500) throw error;
      // A policy that fails, for example because a privilege on a table is missing, permits nothing.
      return [];
    }
  };

  return {
    async readAccess(caller, topic) {
      const allowed = await allowedExtensions(caller, topic, "select", ["broadcast", "presence"]);
      return { broadcast: allowed.includes("broadcast"), presence: allowed.includes("presence") };
    },
    async mayWrite(caller, { name, isPrivate }, extension) {
      if (isReadOnlyAccess(caller)) return false;
      return !isPrivate || (await allowedExtensions(caller, name, "insert", [extension])).includes(extension);
    },
  };
}

function toPolicyCondition([row]: readonly (readonly (string | null)[])[]): PolicyCondition {
  if (!row) {
    throw new HttpError(
      403,
      "PERMISSION_DENIED",
      "Private channels need the table realtime.messages, which does not exist.",
    );
  }
  const [isGranted, isRestricted, permissive, restrictive] = row;
  if (isGranted !== "t") return false;
  if (isRestricted !== "t") return true;
  if (permissive == null) return false;
  return { sql: restrictive == null ? permissive : `(${permissive}) and ${restrictive}` };
}

/** The condition is evaluated under the table's own name, so that it can be used as Postgres prints it. */
function buildCheck(condition: string, topic: string, extensions: readonly ChannelExtension[]): Statement {
  const now = new Date().toISOString();
  const messages = extensions.map((extension) => ({
    topic,
    extension,
    private: true,
    inserted_at: now,
    updated_at: now,
  }));
  return {
    text: `select coalesce((${condition}), false)
      from pg_catalog.json_array_elements($1::pg_catalog.json) with ordinality as "$messages" ("$message", "$number")
      cross join lateral pg_catalog.json_populate_record(null::realtime.messages, "$messages"."$message") as messages
      order by "$messages"."$number"`,
    values: [JSON.stringify(messages)],
  };
}
