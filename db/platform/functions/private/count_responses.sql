create or replace function private.count_responses(caller_key text) returns void
language sql
begin atomic
  insert into private.kept_answer_counts (caller_key, keys, bytes, number, counted_at)
    select count_responses.caller_key, count(*), coalesce(sum(kept.bytes), 0), coalesce(max(kept.number), 0), clock_timestamp()
      from private.kept_answers as kept where kept.caller_key = count_responses.caller_key
    on conflict (caller_key) do update
      set keys = excluded.keys, bytes = excluded.bytes, number = excluded.number, counted_at = excluded.counted_at;
end;
comment on function private.count_responses is 'Counts the responses that are kept for the caller, and remembers the result.';
