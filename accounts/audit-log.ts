import { type AsOwner, inOwnerTransaction } from "#postgres/database";

/** A user as the audit log names one; a deleted user has neither uuid nor address. */
type AuditUser = { readonly key: string; readonly id: string | null; readonly email: string | null };

type AuditEntry = {
  readonly id: string;
  readonly at: string;
  /** The name of the event, such as `session.created`. */
  readonly event: string;
  /** The affected user. */
  readonly user: AuditUser | null;
  /** The acting user, if it is not the affected one. */
  readonly by: AuditUser | null;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
};

export type AuditLogFilter = {
  /** The key of the affected user. */
  readonly userId: string | null;
  /** The name of an event, or a prefix of names that ends with a dot. */
  readonly event: string | null;
  readonly from: Date | null;
  readonly to: Date | null;
  /** The id of an entry; only entries before it are returned. */
  readonly before: string | null;
  readonly limit: number;
};

/** Searching a large log for rare events can take longer; a time range limits the search. */
const LIMIT_TIME = "set local statement_timeout = '10s'";
const userOf = (name: string, key: string) =>
  `case when ${key} is not null then pg_catalog.jsonb_build_object('key', ${key}::pg_catalog.text, 'id', ${name}.id, 'email', ${name}.email) end`;
const READ_AUDIT_LOG = `
  select entry.id::pg_catalog.text, pg_catalog.to_jsonb(entry.at) #>> '{}' as at, entry.event, ${userOf("affected", "entry.user_id")} as user,
    ${userOf("actor", "entry.by")} as by, pg_catalog.host(entry.address) as address, entry.request_id,
    entry.details - 'by' as details
  from (
    select *, case when details ->> 'by' ~ '^[0-9]{1,18}$' then (details ->> 'by')::bigint end as by from auth.audit_log
    where ($1::bigint is null or user_id = $1)
      and ($2::pg_catalog.text is null or event = $2 or pg_catalog.right($2, 1) = '.' and pg_catalog.starts_with(event, $2))
      and ($3::pg_catalog.timestamptz is null or at >= $3) and ($4::pg_catalog.timestamptz is null or at < $4)
      and ($5::bigint is null or id < $5)
    order by id desc limit $6
  ) as entry
  left join auth.users as affected on affected.user_id = entry.user_id
  left join auth.users as actor on actor.user_id = entry.by
  order by entry.id desc`;

const HAS_AUDIT_LOG = "select pg_catalog.to_regclass('auth.audit_log') is not null as has";

/** Returns the newest entries first; null if the database has no audit log. */
export function readAuditLog(asOwner: AsOwner, filter: AuditLogFilter): Promise<readonly AuditEntry[] | null> {
  const { userId, event, from, to, before, limit } = filter;
  return inOwnerTransaction(asOwner, async (client) => {
    await client.query(LIMIT_TIME);
    const found = await client.query<{ has: boolean }>(HAS_AUDIT_LOG);
    if (!found.rows[0]!.has) return null;
    const { rows } = await client.query<AuditEntry>(READ_AUDIT_LOG, [userId, event, from, to, before, limit]);
    return rows;
  });
}
