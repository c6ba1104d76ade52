-- Stands in for the extension pg_jsonschema where Postgres lacks it. What it does not know of a schema, such as $ref, is refused.
create function :SCHEMA.jsonb_matches_schema(schema json, instance jsonb) returns boolean language plpgsql immutable strict parallel safe set search_path = '' as $fn$
declare
  v_schema jsonb := schema::jsonb;
  v_type text := jsonb_typeof(instance);
  v_key text;
  v_value jsonb;
  v_number numeric := case when jsonb_typeof(instance) = 'number' then (instance #>> '{}')::numeric end;
  v_text text := case when jsonb_typeof(instance) = 'string' then instance #>> '{}' end;
begin
  if jsonb_typeof(v_schema) = 'boolean' then
    return v_schema::boolean;
  end if;
  for v_key, v_value in select * from jsonb_each(v_schema) loop
    if not (case v_key
      when 'type' then exists (
        select from jsonb_array_elements_text(case jsonb_typeof(v_value) when 'array' then v_value else jsonb_build_array(v_value) end) as type
        where type = v_type or type = 'integer' and v_number = trunc(v_number)
      )
      when 'enum' then v_value @> jsonb_build_array(instance) and exists (select from jsonb_array_elements(v_value) as value where value = instance)
      when 'const' then v_value = instance
      when 'minimum' then coalesce(v_number >= v_value::numeric, true)
      when 'maximum' then coalesce(v_number <= v_value::numeric, true)
      when 'exclusiveMinimum' then coalesce(v_number > v_value::numeric, true)
      when 'exclusiveMaximum' then coalesce(v_number < v_value::numeric, true)
      when 'multipleOf' then coalesce(v_number % v_value::numeric = 0, true)
      when 'minLength' then coalesce(length(v_text) >= v_value::integer, true)
      when 'maxLength' then coalesce(length(v_text) <= v_value::integer, true)
      when 'pattern' then coalesce(v_text ~ (v_value #>> '{}'), true)
      when 'required' then v_type <> 'object' or instance ?& array(select jsonb_array_elements_text(v_value))
      when 'minProperties' then v_type <> 'object' or (select count(*) from jsonb_object_keys(case v_type when 'object' then instance else '{}' end)) >= v_value::integer
      when 'maxProperties' then v_type <> 'object' or (select count(*) from jsonb_object_keys(case v_type when 'object' then instance else '{}' end)) <= v_value::integer
      when 'properties' then v_type <> 'object' or not exists (
        select from jsonb_each(v_value) as property (name, schema)
        where instance ? property.name and not :SCHEMA.jsonb_matches_schema(property.schema::json, instance -> property.name)
      )
      when 'additionalProperties' then v_type <> 'object' or not exists (
        select from jsonb_each(case v_type when 'object' then instance else '{}' end) as member (name, value)
        where not coalesce(v_schema -> 'properties' ? member.name, false) and not :SCHEMA.jsonb_matches_schema(v_value::json, member.value)
      )
      when 'items' then v_type <> 'array' or not exists (
        select from jsonb_array_elements(case v_type when 'array' then instance else '[]' end) as item where not :SCHEMA.jsonb_matches_schema(v_value::json, item)
      )
      when 'minItems' then v_type <> 'array' or jsonb_array_length(case v_type when 'array' then instance else '[]' end) >= v_value::integer
      when 'maxItems' then v_type <> 'array' or jsonb_array_length(case v_type when 'array' then instance else '[]' end) <= v_value::integer
      when 'uniqueItems' then v_type <> 'array' or not v_value::boolean or (
        select count(*) = count(distinct item) from jsonb_array_elements(case v_type when 'array' then instance else '[]' end) as item
      )
      when 'not' then not :SCHEMA.jsonb_matches_schema(v_value::json, instance)
      when 'allOf' then not exists (select from jsonb_array_elements(v_value) as part where not :SCHEMA.jsonb_matches_schema(part::json, instance))
      when 'anyOf' then exists (select from jsonb_array_elements(v_value) as part where :SCHEMA.jsonb_matches_schema(part::json, instance))
      when 'oneOf' then (select count(*) = 1 from jsonb_array_elements(v_value) as part where :SCHEMA.jsonb_matches_schema(part::json, instance))
      else null
    end) then
      return false;
    end if;
    if v_key not in (
      'type', 'enum', 'const', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'pattern', 'required',
      'minProperties', 'maxProperties', 'properties', 'additionalProperties', 'items', 'minItems', 'maxItems', 'uniqueItems', 'not', 'allOf', 'anyOf', 'oneOf',
      'title', 'description', 'default', 'examples', 'format', '$schema', '$id', '$comment', 'definitions', '$defs'
    ) then
      raise exception 'The keyword % of a JSON Schema is not supported', v_key using errcode = 'feature_not_supported', hint = 'Install the extension pg_jsonschema.';
    end if;
  end loop;
  return true;
end;
$fn$;
create function :SCHEMA.json_matches_schema(schema json, instance json) returns boolean language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.jsonb_matches_schema($1, $2::jsonb); $fn$;
create function :SCHEMA.jsonschema_is_valid(schema json) returns boolean language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.jsonb_matches_schema($1, 'null') is not null; $fn$;
