import { randomUUID } from "node:crypto";
import type pg from "pg";
import { queryApiSchema } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import { shortenText } from "#runtime";
import type { Webhook } from "./delivery.ts";

/** A webhook whose deliveries this process sends. */
export type LeasedWebhook = Webhook & {
  readonly schema: string;
  readonly table: string;
  readonly where: string | null;
  readonly role: string;
  /** The claims as JSON with the role, as in a token. */
  readonly claimsText: string;
};

/** A recorded change. */
export type RecordedChange = {
  /** The id, which orders the changes of one row. */
  readonly id: string;
  readonly deliveryId: string;
  readonly type: "INSERT" | "UPDATE" | "DELETE";
  readonly key: string;
  readonly movedTo: string | null;
  readonly attempts: number;
  readonly recordedAt: string;
  /** The row before the change, as JSON. */
  readonly old: string | null;
  readonly new: string | null;
  /** The same row, reduced to some columns. */
  readonly sentOld: string | null;
  readonly sentNew: string | null;
};

type PageRequest = {
  /** The ids of changes that are not read again. */
  readonly loadedIds: readonly string[];
  readonly blockedKeys: readonly string[];
  /** Null for all columns. */
  readonly columns: readonly string[] | null;
  readonly limit: number;
};

export type FailedDelivery = {
  readonly id: string;
  readonly attempts: number;
  /** Null if the delivery is dead. */
  readonly delayMs: number | null;
  readonly reason: string;
};

/** The state of a webhook for operators, without its secret. */
export type WebhookState = {
  readonly name: string;
  readonly table: string;
  readonly events: readonly string[];
  readonly url: string;
  /** Changes for a stopped webhook are recorded. */
  readonly state: "enabled" | "stopped" | "disabled";
  readonly disabledBecause: string | null;
  /** The number of changes that wait. */
  readonly pending: number;
  readonly oldestAt: Date | null;
  readonly dead: number;
  readonly deliveredAt: Date | null;
  /** The error of the newest change that waits or is dead. */
  readonly lastError: string | null;
};

export type WebhookBacklog = { readonly pending: number; readonly dead: number; readonly oldestSeconds: number };

type DeliveryResults = {
  /** The ids of changes that were delivered, or must not be sent. */
  readonly doneIds: readonly string[];
  /** True if one of them was delivered. */
  readonly hasDelivered: boolean;
  readonly failed: readonly FailedDelivery[];
};

type LeaseRow = LeasedWebhook & {
  readonly isLeased: boolean;
  /** The remaining time of a lease that another process holds. */
  readonly expiresInMs: number | null;
};

type Lease = {
  /** The number of enabled webhooks. */
  readonly enabled: number;
  readonly webhooks: readonly LeasedWebhook[];
  /** The milliseconds until the first lease of another process ends, unless that process renews it. */
  readonly nextExpiryMs: number;
};

/** The milliseconds from the call until another process may take over the webhooks. */
export const LEASE_MS = 10_000;
const PAGE_BYTES = 4 * 2 ** 20;
const MAX_REASON_LENGTH = 1_000;

/** The query reads the catalogue, so it does not fail if the schema does not exist or is not accessible. */
const HAS_WEBHOOKS = `
  select from pg_catalog.pg_class
  where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'api') and relname = 'webhooks'
    and pg_catalog.has_schema_privilege(relnamespace, 'usage') and pg_catalog.has_table_privilege(oid, 'select, update')
    and pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('content_service')::pg_catalog.oid, 'usage') and pg_catalog.has_table_privilege(pg_catalog.to_regclass('content_service.webhook_deliveries'), 'delete')`;

const LEASE = `
  with webhooks as materialized (
    select * from api.webhooks where is_enabled and disabled_because is null
  ), leased as (
    insert into content_service.webhook_leases as lease (webhook_id, holder, expires_at)
    select id, $1, pg_catalog.clock_timestamp() operator(pg_catalog.+) (${LEASE_MS} operator(pg_catalog.*) interval '1 millisecond') from webhooks order by id
    on conflict (webhook_id) do update set holder = excluded.holder, expires_at = excluded.expires_at
      where lease.holder = excluded.holder or lease.expires_at < pg_catalog.clock_timestamp()
    returning webhook_id
  )
  select id, name, url, secret, "where", role, max_attempts as "maxAttempts",
    (extract(epoch from timeout) operator(pg_catalog.*) 1000)::integer as "timeoutMs", (claims operator(pg_catalog.||) pg_catalog.jsonb_build_object('role', role))::pg_catalog.text as "claimsText",
    (pg_catalog.parse_ident(table_name))[1] as schema, (pg_catalog.parse_ident(table_name))[2] as table, leased.webhook_id is not null as "isLeased",
    case when pg_catalog.isfinite(other.expires_at)
      then (extract(epoch from other.expires_at operator(pg_catalog.-) pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000)::pg_catalog.float8
    end as "expiresInMs"
  from webhooks
    left join leased on leased.webhook_id = webhooks.id
    left join content_service.webhook_leases as other on other.webhook_id = webhooks.id and leased.webhook_id is null`;

const RELEASE = `
  update content_service.webhook_leases set holder = null, expires_at = '-infinity'
  where holder = $1 and (webhook_id = $2 or $2 is null)`;

const READ_DELAYED = `
  select key, moved_to as "movedTo", extract(epoch from due_at operator(pg_catalog.-) pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000 as "delayMs"
  from content_service.webhook_deliveries where webhook_id = $1 and state = 'pending' and due_at > pg_catalog.clock_timestamp()`;

/**
 * If a row with a blocked key has moved to another key, that key is blocked too, and so is a key that a row has left for a
 * blocked one. The size of a change is that of its text, because the storage may be compressed to a hundredth.
 */
const READ_PAGE = `
  with recursive blocked (key) as (
    select pg_catalog.unnest($3::pg_catalog.text[])
    union
    select case when delivery.key = blocked.key then delivery.moved_to else delivery.key end
    from blocked join content_service.webhook_deliveries as delivery on blocked.key in (delivery.key, delivery.moved_to)
    where delivery.webhook_id = $1 and delivery.moved_to is not null and delivery.state = 'pending'
  ), page as (
    select *, pg_catalog.sum(coalesce(pg_catalog.octet_length(old::pg_catalog.text), 0) operator(pg_catalog.+) coalesce(pg_catalog.octet_length(new::pg_catalog.text), 0))
      over (order by id rows between unbounded preceding and 1 preceding) as bytes_before
    from (
      select * from content_service.webhook_deliveries
      where webhook_id = $1 and state = 'pending' and id <> all ($2::bigint[])
        and not key = any (array(select key from blocked)) and not coalesce(moved_to = any (array(select key from blocked)), false)
      order by id limit $5
    ) as page
  )
  select id, delivery_id as "deliveryId", type, key, moved_to as "movedTo", attempts, old::pg_catalog.text, new::pg_catalog.text,
    pg_catalog.to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "recordedAt",
    (select pg_catalog.json_object_agg(name, value) from pg_catalog.json_each(case when $4::pg_catalog.text[] is not null then old end) as cell (name, value)
      where name = any ($4))::pg_catalog.text as "sentOld",
    (select pg_catalog.json_object_agg(name, value) from pg_catalog.json_each(case when $4::pg_catalog.text[] is not null then new end) as cell (name, value)
      where name = any ($4))::pg_catalog.text as "sentNew"
  from page where coalesce(bytes_before, 0) < ${PAGE_BYTES} order by id`;

/**
 * A process that has lost its lease meanwhile changes nothing. The time of the last delivery is written rarely: versions of
 * that row would accumulate during a long transaction.
 */
const COMPLETE = `
  with lease as materialized (
    select from content_service.webhook_leases where webhook_id = $1 and holder = $2 for update
  ), delivered as (
    update content_service.webhook_leases set delivered_at = pg_catalog.clock_timestamp()
    where webhook_id = $1 and $8 and exists (select from lease)
      and coalesce(delivered_at < pg_catalog.clock_timestamp() operator(pg_catalog.-) interval '5 seconds', true)
  ), done as (
    delete from content_service.webhook_deliveries where id = any ($3::bigint[]) and exists (select from lease)
  ), failed as (
    update content_service.webhook_deliveries as delivery
    set attempts = failure.attempts, last_error = failure.reason,
      state = case when failure.delay is null then 'dead' else 'pending' end,
      due_at = pg_catalog.clock_timestamp() operator(pg_catalog.+) (failure.delay operator(pg_catalog.*) interval '1 millisecond')
    from unnest($4::bigint[], $5::integer[], $6::double precision[], $7::pg_catalog.text[]) as failure (id, attempts, delay, reason)
    where delivery.id = failure.id and exists (select from lease)
  )
  select from lease`;

const READ_BACKLOG = `
  select
    (select pg_catalog.count(*)::int from (select from content_service.webhook_deliveries where state = 'pending' limit 1000000) as pending) as pending,
    (select pg_catalog.count(*)::int from (select from content_service.webhook_deliveries where state = 'dead' limit 1000000) as dead) as dead,
    coalesce(extract(epoch from pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.min(recorded_at)), 0)::pg_catalog.float8 as "oldestSeconds"
  from api.webhooks left join lateral (
    select recorded_at from content_service.webhook_deliveries
    where webhook_id = webhooks.id and state = 'pending' order by id limit 1
  ) as first on true`;

const READ_STATES = `
  select webhook.name, webhook.table_name as "table", webhook.events, webhook.url,
    case when not webhook.is_enabled then 'disabled' when webhook.disabled_because is not null then 'stopped' else 'enabled' end
      as state,
    webhook.disabled_because as "disabledBecause", pending.count as pending, oldest.recorded_at as "oldestAt", dead.count as dead,
    lease.delivered_at as "deliveredAt", failed.last_error as "lastError"
  from api.webhooks as webhook
    left join content_service.webhook_leases as lease on lease.webhook_id = webhook.id
    cross join lateral (
      select pg_catalog.count(*)::int from (
        select from content_service.webhook_deliveries where webhook_id = webhook.id and state = 'pending' limit $1
      ) as counted
    ) as pending
    cross join lateral (
      select pg_catalog.count(*)::int from (
        select from content_service.webhook_deliveries where webhook_id = webhook.id and state = 'dead' limit $1
      ) as counted
    ) as dead
    left join lateral (
      select recorded_at from content_service.webhook_deliveries
      where webhook_id = webhook.id and state = 'pending' order by id limit 1
    ) as oldest on true
    left join lateral (
      (
        select id, last_error from content_service.webhook_deliveries
        where webhook_id = webhook.id and due_at is not null order by due_at desc limit 1
      ) union all (
        select id, last_error from content_service.webhook_deliveries
        where webhook_id = webhook.id and state = 'dead' order by recorded_at desc limit 1
      ) order by id desc limit 1
    ) as failed on true
  order by webhook.name`;

const DISABLE = `
  update api.webhooks set disabled_because = $3, is_enabled = is_enabled and not $4
  where id = $1 and exists (select from content_service.webhook_leases where webhook_id = $1 and holder = $2)`;

export async function hasWebhooks(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => queryApiSchema(client, HAS_WEBHOOKS));
  return rowCount === 1;
}

/** For each webhook, counts at most `maxCounted` changes of each state; all if it is null. */
export async function readWebhookStates(
  client: pg.ClientBase,
  maxCounted: number | null,
): Promise<readonly WebhookState[]> {
  return (await queryApiSchema<WebhookState>(client, READ_STATES, [maxCounted])).rows;
}

/** The webhooks and their recorded changes in the database, for the process that has leased them. */
export class WebhookStore {
  readonly #asOwner: AsOwner;
  readonly #holder = randomUUID();

  constructor(asOwner: AsOwner) {
    this.#asOwner = asOwner;
  }

  /** Leases the enabled webhooks that no other process has, or renews their leases. `enabled` counts those of all processes. */
  async lease(): Promise<Lease> {
    const { rows } = await this.#query<LeaseRow>(LEASE, [this.#holder]);
    return {
      enabled: rows.length,
      webhooks: rows.filter(({ isLeased }) => isLeased).map(({ isLeased, expiresInMs, ...webhook }) => webhook),
      nextExpiryMs: Math.min(...rows.map(({ expiresInMs }) => expiresInMs ?? Number.POSITIVE_INFINITY)),
    };
  }

  /** Releases the leases of one webhook, or of all, so that another process can take over at once. */
  async release(webhookId: string | null): Promise<void> {
    await this.#query(RELEASE, [this.#holder, webhookId]);
    await this.#query("notify webhooks", []);
  }

  /** Reads the backlog of all webhooks; at most a million of each state are counted. */
  async readBacklog(): Promise<WebhookBacklog> {
    return (await this.#query<WebhookBacklog>(READ_BACKLOG, [])).rows[0]!;
  }

  /** Follows renamed tables, and creates missing triggers. */
  async maintain(): Promise<void> {
    await this.#query("select content_service.maintain_webhooks()", []);
  }

  async readDelayed(
    webhookId: string,
  ): Promise<readonly { readonly key: string; readonly movedTo: string | null; readonly delayMs: number }[]> {
    const rows = await this.#query<{ key: string; movedTo: string | null; delayMs: string }>(READ_DELAYED, [webhookId]);
    return rows.rows.map(({ delayMs, ...keys }) => ({ ...keys, delayMs: Number(delayMs) }));
  }

  async readPage(webhookId: string, page: PageRequest): Promise<readonly RecordedChange[]> {
    const { loadedIds, blockedKeys, columns, limit } = page;
    const values = [webhookId, loadedIds, blockedKeys, columns, limit];
    return (await this.#query<RecordedChange>(READ_PAGE, values)).rows;
  }

  /** Returns false if the lease is lost, and nothing was changed. */
  async complete(webhookId: string, { doneIds, hasDelivered, failed }: DeliveryResults): Promise<boolean> {
    const { rowCount } = await this.#query(COMPLETE, [
      webhookId,
      this.#holder,
      doneIds,
      failed.map(({ id }) => id),
      failed.map(({ attempts }) => attempts),
      failed.map(({ delayMs }) => delayMs),
      failed.map(({ reason }) => shortenText(reason, MAX_REASON_LENGTH)),
      hasDelivered,
    ]);
    return rowCount === 1;
  }

  /** Stops sending; with `ends`, stops recording too. */
  async disable(webhookId: string, reason: string, { ends }: { readonly ends: boolean }): Promise<void> {
    await this.#query(DISABLE, [webhookId, this.#holder, shortenText(reason, MAX_REASON_LENGTH), ends]);
  }

  #query<Row extends object = object>(text: string, values: unknown[]) {
    return this.#asOwner((client) => queryApiSchema<Row>(client, text, values));
  }
}
