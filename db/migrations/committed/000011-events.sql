--! Previous: sha1:b0e28abe7a3fe741b9d9d71e2ef3923a893019b5
--! Hash: sha1:70b5e625d144fec879547cdcc1c4f67a90217c83
--! Message: events

-- Domain events for GraphQL subscriptions. A trigger says which changes of a table are told; "@subscription" in the
-- table's comment says what they are called there, and by which column a subscriber may choose (by:id? if it likes).
--! Included private/tg__event.sql
-- Keys only: a payload over 8,000 bytes would fail the user's own write, and the subscriber re-reads the row in its own
-- role anyway. Keys travel as text, because a bigint does not survive JSON in JavaScript.
create or replace function private.tg__event() returns trigger as $$
declare
  v_row jsonb := to_jsonb(case TG_OP when 'DELETE' then OLD else NEW end);
begin
  perform pg_notify('graphql', jsonb_build_object(
    's', TG_TABLE_SCHEMA,
    't', TG_TABLE_NAME,
    'op', lower(TG_OP),
    'k', (select jsonb_object_agg(key, v_row ->> key) from unnest('{id}' || TG_ARGV) as key where v_row ? key)
  )::text);
  return null;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__event is
  'For each row: tells channel graphql which row changed. Arguments: the columns to send besides id.';
--! EndIncluded private/tg__event.sql

create trigger _500_event after insert or update on public.articles
  for each row execute function private.tg__event();
create trigger _500_event after insert on public.comments
  for each row execute function private.tg__event('article_id');
