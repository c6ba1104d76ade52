-- Each request with a key asks this, so the caller's responses are not counted each time: those up to the last count are remembered.
create or replace function private.responses_of_caller(caller_key text, out keys bigint, out bytes bigint, out uncounted bigint) as $$
declare
  v_counted private.kept_answer_counts;
begin
  select counts.* into v_counted from private.kept_answer_counts as counts
    where counts.caller_key = responses_of_caller.caller_key;
  select count(*), coalesce(sum(kept.bytes), 0) into uncounted, bytes from private.kept_answers as kept
    where kept.caller_key = responses_of_caller.caller_key and kept.number > coalesce(v_counted.number, 0);
  keys := uncounted + coalesce(v_counted.keys, 0);
  bytes := bytes + coalesce(v_counted.bytes, 0);
end;
$$ language plpgsql stable set search_path = '';
comment on function private.responses_of_caller is
  'How many responses are kept for the caller, and their bytes; uncounted is how many were stored since the last count.';
