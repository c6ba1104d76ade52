--! Previous: sha1:1a57da9d68c8bce5ce27fab931d9e2a10b64534b
--! Hash: sha1:42fe4f22ad65245a711f7993069bbfc628bda164
--! Message: bounds of tables

insert into private.bounds (name, bound) values
  ('rows of auth.audit_log', 10000000),
  ('days of auth.audit_log', 400),
  ('rows of auth.flow_states', 200000),
  ('rows of auth.federation_states', 200000),
  ('rows of auth.mfa_challenges', 200000),
  ('rows of auth.login_throttle', 1000000),
  ('rows of private.rate_limits', 1000000),
  ('dead deliveries of a webhook', 100000),
  ('refresh tokens of a session', 1000),
  ('token sessions of a user', 1000)
  on conflict (name) do nothing;
--! Included private/trim_tables.sql
-- Functions that add such a row delete a few expired ones; this deletes the rest, and the oldest rows beyond a bound, so that a table stays bounded
-- whoever adds how many rows between two calls. At most every minute, by one process. Expired rows in portions, so that it is never long.
create or replace function private.trim_tables() returns void as $$
declare
  v_table record;
begin
  perform from private.bounds
    where name = 'rows of auth.audit_log' and used_at < clock_timestamp() - interval '50 seconds' for update skip locked;
  if not found then
    return;
  end if;
  update private.bounds set used_at = clock_timestamp() where name = 'rows of auth.audit_log';

  for v_table in
    select * from (values
      ('auth.flow_states', 'expires_at', 'expires_at < now()'),
      ('auth.federation_states', 'expires_at', 'expires_at < now()'),
      ('auth.federation_logins', 'expires_at', 'expires_at < now()'),
      ('auth.federation_codes', 'expires_at', 'expires_at < now()'),
      ('auth.federation_replays', 'expires_at', 'expires_at < now()'),
      ('auth.mail_tokens', 'expires_at', 'expires_at < now()'),
      ('auth.mfa_challenges', 'expires_at', 'expires_at < now() - interval ''10 minutes'''),
      ('auth.refresh_tokens', 'expires_at', 'expires_at < now()'),
      ('auth.sessions', 'expires_at', 'least(idle_expires_at, expires_at) < now()'),
      ('auth.login_throttle', 'window_started_at', 'window_started_at < now() - interval ''15 minutes'''),
      ('auth.deleted_accounts', 'deleted_at', 'deleted_at < now() - interval ''1 day'''),
      ('private.rate_limits', 'expire', 'expire < extract(epoch from clock_timestamp()) * 1000'),
      -- Its times have no index, but the order of its ids.
      (
        'auth.audit_log', 'id', 'id in (select id from auth.audit_log order by id limit 100000)
          and at < now() - make_interval(days => private.bound(''days of auth.audit_log'')::integer)'
      )
    ) as kept (name, age, is_over)
  loop
    execute format(
      'delete from %1$s where ctid in (select ctid from %1$s where %2$s order by %3$s limit 100000 for update skip locked)',
      v_table.name, v_table.is_over, v_table.age
    );
    if private.bound('rows of ' || v_table.name) is not null then
      execute format(
        'delete from %1$s where ctid in (
          select ctid from %1$s order by %2$s limit greatest(0, (%3$s) - %4$s) for update skip locked
        )',
        v_table.name, v_table.age,
        -- Of the table whose rows are deleted in the order of their numbers only, nothing has to be counted.
        format(case v_table.age when 'id' then 'select max(id) - min(id) + 1 from %s' else 'select count(*) from %s' end, v_table.name),
        private.bound('rows of ' || v_table.name)
      );
    end if;
  end loop;

  delete from private.webhook_deliveries where id in (
    select dead.id from api.webhooks
    cross join lateral (
      select recorded_at from private.webhook_deliveries
      where webhook_id = webhooks.id and state = 'dead' order by recorded_at desc
      offset private.bound('dead deliveries of a webhook') limit 1
    ) as newest
    join private.webhook_deliveries as dead
      on dead.webhook_id = webhooks.id and dead.state = 'dead' and dead.recorded_at <= newest.recorded_at
    limit 100000
  );
  -- Only tokens that were exchanged: their repetition is then refused as unknown, and ends no session any more.
  delete from auth.refresh_tokens where token_hash in (
    select token_hash from (
      select token.token_hash, token.rotated_at, row_number() over (partition by token.family_id order by token.issued_at desc) as place
      from auth.refresh_tokens as token
      where token.family_id in (
        select family_id from auth.refresh_tokens group by 1 having count(*) > private.bound('refresh tokens of a session')
      )
    ) as placed
    where place > private.bound('refresh tokens of a session') and rotated_at is not null limit 100000
  );
  delete from auth.token_sessions where id in (
    select id from (
      select session.id, row_number() over (partition by session.user_id order by session.refreshed_at desc) as place
      from auth.token_sessions as session
      where session.user_id in (
        select user_id from auth.token_sessions group by 1 having count(*) > private.bound('token sessions of a user')
      )
    ) as placed
    where place > private.bound('token sessions of a user') limit 100000
  );
end;
$$ language plpgsql set search_path = '';
comment on function private.trim_tables is
  'Deletes what is past its time, and the oldest rows beyond the bounds of tables; called by the service as the owner.';
--! EndIncluded private/trim_tables.sql
