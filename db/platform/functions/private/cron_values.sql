-- Accepts less than the library that evaluates cron texts; what both accept means the same.
create or replace function private.cron_values(field text, unit text, low integer, high integer, names text[]) returns integer[] as $$
declare
  v_item text;
  v_match text[];
  v_bounds integer[];
  v_step integer;
  v_values integer[] := '{}';
begin
  foreach v_item in array string_to_array(lower(field), ',') loop
    v_match := regexp_match(v_item, '^(?:\*|(\d\d?|[a-z]{3})(?:-(\d\d?|[a-z]{3}))?)(?:/(\d\d?))?$');
    v_bounds := array[low, high];
    v_step := coalesce(v_match[3]::integer, 1);
    if v_match[1] is not null then
      v_bounds := array(
        select case when bound ~ '^\d' then bound::integer else array_position(names, bound) - 1 + low end
        from unnest(array[v_match[1], coalesce(v_match[2], v_match[1])]) with ordinality as bounds (bound, place)
        order by place
      );
    end if;
    if v_match is null or array_position(v_bounds, null) is not null
      or v_bounds[1] < low or v_bounds[2] > high or v_bounds[1] > v_bounds[2]
      or v_step not between 1 and coalesce(cardinality(names), high - low + 1)
      or (v_match[3] is not null and v_match[1] is not null and v_match[2] is null)
    then
      raise exception 'The % of a cron text cannot be "%"', unit, v_item using errcode = 'WRONG', detail = 'cron', hint = format(
        'Write *, numbers from %s to %s, ranges such as %s-%s, steps such as */2 or %s-%s/2, or a list of these separated by commas%s.',
        low, high, low, low + 5, low, low + 5, ', or names such as ' || names[1]
      );
    end if;
    v_values := v_values || array(select generate_series(v_bounds[1], v_bounds[2], v_step));
  end loop;
  return v_values;
end;
$$ language plpgsql immutable set search_path = '';
comment on function private.cron_values is 'The values of one field of a cron text. Raises if the field cannot be read.';
