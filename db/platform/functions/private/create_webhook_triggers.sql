-- Statement triggers, which make writes of many rows cheap, do not fire for a partition when its root is written, and the other way
-- round: partitions have row triggers.
create or replace function private.create_webhook_triggers(webhook api.webhooks) returns void as $$
declare
  v_table regclass := to_regclass(webhook.table_name);
  v_event text;
  v_level text := case when private.is_in_hierarchy(v_table) then 'for each row' else 'for each statement' end;
begin
  foreach v_event in array webhook.events loop
    execute format(
      'create trigger %I after %s on %s %s %s execute function private.tg__webhook(%L)',
      private.webhook_trigger_name(webhook.id, v_event), v_event, v_table,
      case when v_level = 'for each row' then ''
        else 'referencing' || case v_event when 'INSERT' then '' else ' old table as old_rows' end
          || case v_event when 'DELETE' then '' else ' new table as new_rows' end
      end,
      v_level, webhook.id
    );
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function private.create_webhook_triggers is 'Creates the triggers that record the changes of a table for a webhook.';
