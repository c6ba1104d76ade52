-- Stands in for the extension vector where Postgres lacks it: the type with its operators and functions, without indexes, so each search
-- reads all rows. A value is kept as text, by functions of Postgres itself: only a superuser can create such a type.
create type :SCHEMA.vector;
create function :SCHEMA.vector_in(cstring) returns :SCHEMA.vector language internal immutable strict parallel safe as 'textin';
create function :SCHEMA.vector_out(:SCHEMA.vector) returns cstring language internal immutable strict parallel safe as 'textout';
create function :SCHEMA.vector_recv(internal) returns :SCHEMA.vector language internal immutable strict parallel safe as 'textrecv';
create function :SCHEMA.vector_send(:SCHEMA.vector) returns bytea language internal immutable strict parallel safe as 'textsend';
create function :SCHEMA.vector_typmod_in(cstring[]) returns integer language internal immutable strict parallel safe as 'varchartypmodin';
create function :SCHEMA.vector_typmod_out(integer) returns cstring language internal immutable strict parallel safe as 'varchartypmodout';
create type :SCHEMA.vector (
  input = :SCHEMA.vector_in, output = :SCHEMA.vector_out, receive = :SCHEMA.vector_recv, send = :SCHEMA.vector_send,
  typmod_in = :SCHEMA.vector_typmod_in, typmod_out = :SCHEMA.vector_typmod_out, storage = extended
);
create function :SCHEMA.vector_elements(value :SCHEMA.vector) returns double precision[] language plpgsql immutable strict parallel safe set search_path = '' as $fn$
begin
  if value::text !~ '^\s*\[[^\[\]{}"]*[0-9][^\[\]{}"]*\]\s*$' then
    raise exception 'invalid input syntax for type vector: "%"', value::text using errcode = 'invalid_text_representation';
  end if;
  return string_to_array(btrim(value::text, E'[] \n\t'), ',')::double precision[];
end;
$fn$;
-- The limit has the four bytes of a header added to it.
create function :SCHEMA.vector(:SCHEMA.vector, integer, boolean) returns :SCHEMA.vector language plpgsql immutable strict parallel safe set search_path = '' as $fn$
declare
  v_elements real[] := :SCHEMA.vector_elements($1);
begin
  if $2 > 0 and cardinality(v_elements) <> $2 - 4 then
    raise exception 'expected % dimensions, not %', $2 - 4, cardinality(v_elements) using errcode = 'data_exception';
  end if;
  return '[' || array_to_string(v_elements, ',') || ']';
end;
$fn$;
create cast (:SCHEMA.vector as :SCHEMA.vector) with function :SCHEMA.vector(:SCHEMA.vector, integer, boolean) as implicit;
create function :SCHEMA.array_to_vector(real[], integer, boolean) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.vector((('[' || array_to_string($1, ',') || ']')::text):::SCHEMA.vector, $2, $3); $fn$;
create function :SCHEMA.array_to_vector(double precision[], integer, boolean) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector($1::real[], $2, $3); $fn$;
create function :SCHEMA.array_to_vector(integer[], integer, boolean) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector($1::real[], $2, $3); $fn$;
create function :SCHEMA.array_to_vector(numeric[], integer, boolean) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector($1::real[], $2, $3); $fn$;
create function :SCHEMA.vector_to_float4(:SCHEMA.vector, integer, boolean) returns real[] language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.vector_elements($1)::real[]; $fn$;
create cast (real[] as :SCHEMA.vector) with function :SCHEMA.array_to_vector(real[], integer, boolean) as assignment;
create cast (double precision[] as :SCHEMA.vector) with function :SCHEMA.array_to_vector(double precision[], integer, boolean) as assignment;
create cast (integer[] as :SCHEMA.vector) with function :SCHEMA.array_to_vector(integer[], integer, boolean) as assignment;
create cast (numeric[] as :SCHEMA.vector) with function :SCHEMA.array_to_vector(numeric[], integer, boolean) as assignment;
create cast (:SCHEMA.vector as real[]) with function :SCHEMA.vector_to_float4(:SCHEMA.vector, integer, boolean) as implicit;

create function :SCHEMA.vector_dims(:SCHEMA.vector) returns integer language sql immutable strict parallel safe set search_path = '' as $fn$
  select cardinality(:SCHEMA.vector_elements($1)); $fn$;
create function :SCHEMA.vector_pairs(a :SCHEMA.vector, b :SCHEMA.vector) returns table (x double precision, y double precision)
language plpgsql immutable strict parallel safe set search_path = '' as $fn$
declare
  v_a double precision[] := :SCHEMA.vector_elements(a);
  v_b double precision[] := :SCHEMA.vector_elements(b);
begin
  if cardinality(v_a) <> cardinality(v_b) then
    raise exception 'different vector dimensions % and %', cardinality(v_a), cardinality(v_b) using errcode = 'data_exception';
  end if;
  return query select * from unnest(v_a, v_b);
end;
$fn$;
create function :SCHEMA.l2_distance(:SCHEMA.vector, :SCHEMA.vector) returns double precision language sql immutable strict parallel safe set search_path = '' as $fn$
  select sqrt(sum((x - y) * (x - y))) from :SCHEMA.vector_pairs($1, $2); $fn$;
create function :SCHEMA.l1_distance(:SCHEMA.vector, :SCHEMA.vector) returns double precision language sql immutable strict parallel safe set search_path = '' as $fn$
  select sum(abs(x - y)) from :SCHEMA.vector_pairs($1, $2); $fn$;
create function :SCHEMA.inner_product(:SCHEMA.vector, :SCHEMA.vector) returns double precision language sql immutable strict parallel safe set search_path = '' as $fn$
  select sum(x * y) from :SCHEMA.vector_pairs($1, $2); $fn$;
create function :SCHEMA.vector_negative_inner_product(:SCHEMA.vector, :SCHEMA.vector) returns double precision language sql immutable strict parallel safe set search_path = '' as $fn$
  select -sum(x * y) from :SCHEMA.vector_pairs($1, $2); $fn$;
create function :SCHEMA.cosine_distance(:SCHEMA.vector, :SCHEMA.vector) returns double precision language sql immutable strict parallel safe set search_path = '' as $fn$
  select case when sum(x * x) = 0 or sum(y * y) = 0 then 'NaN'::double precision
    else 1 - least(greatest(sum(x * y) / sqrt(sum(x * x) * sum(y * y)), -1), 1) end from :SCHEMA.vector_pairs($1, $2); $fn$;
create function :SCHEMA.vector_norm(:SCHEMA.vector) returns double precision language sql immutable strict parallel safe set search_path = '' as $fn$
  select sqrt(sum(x * x)) from unnest(:SCHEMA.vector_elements($1)) as x; $fn$;
create function :SCHEMA.l2_normalize(:SCHEMA.vector) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector(array_agg(case when norm = 0 then 0 else x / norm end order by place), -1, true)
  from unnest(:SCHEMA.vector_elements($1)) with ordinality as element (x, place), :SCHEMA.vector_norm($1) as norm; $fn$;
create function :SCHEMA.vector_add(:SCHEMA.vector, :SCHEMA.vector) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector(array(select x + y from :SCHEMA.vector_pairs($1, $2)), -1, true); $fn$;
create function :SCHEMA.vector_sub(:SCHEMA.vector, :SCHEMA.vector) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector(array(select x - y from :SCHEMA.vector_pairs($1, $2)), -1, true); $fn$;
create function :SCHEMA.vector_mul(:SCHEMA.vector, :SCHEMA.vector) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector(array(select x * y from :SCHEMA.vector_pairs($1, $2)), -1, true); $fn$;
create operator :SCHEMA.<-> (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.l2_distance);
create operator :SCHEMA.<#> (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_negative_inner_product);
create operator :SCHEMA.<=> (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.cosine_distance);
create operator :SCHEMA.<+> (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.l1_distance);
create operator :SCHEMA.+ (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_add);
create operator :SCHEMA.- (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_sub);
create operator :SCHEMA.* (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_mul);
-- Equality and order of the texts, for distinct and unique: bytes need no collation.
create function :SCHEMA.vector_eq(:SCHEMA.vector, :SCHEMA.vector) returns boolean language internal immutable strict parallel safe as 'byteaeq';
create function :SCHEMA.vector_ne(:SCHEMA.vector, :SCHEMA.vector) returns boolean language internal immutable strict parallel safe as 'byteane';
create function :SCHEMA.vector_lt(:SCHEMA.vector, :SCHEMA.vector) returns boolean language internal immutable strict parallel safe as 'bytealt';
create function :SCHEMA.vector_gt(:SCHEMA.vector, :SCHEMA.vector) returns boolean language internal immutable strict parallel safe as 'byteagt';
create function :SCHEMA.vector_le(:SCHEMA.vector, :SCHEMA.vector) returns boolean language internal immutable strict parallel safe as 'byteale';
create function :SCHEMA.vector_ge(:SCHEMA.vector, :SCHEMA.vector) returns boolean language internal immutable strict parallel safe as 'byteage';
create function :SCHEMA.vector_cmp(:SCHEMA.vector, :SCHEMA.vector) returns integer language internal immutable strict parallel safe as 'byteacmp';
create operator :SCHEMA.= (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_eq, restrict = eqsel, join = eqjoinsel);
create operator :SCHEMA.<> (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_ne);
create operator :SCHEMA.< (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_lt);
create operator :SCHEMA.> (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_gt);
create operator :SCHEMA.<= (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_le);
create operator :SCHEMA.>= (leftarg = :SCHEMA.vector, rightarg = :SCHEMA.vector, function = :SCHEMA.vector_ge);
create operator class :SCHEMA.vector_ops default for type :SCHEMA.vector using btree as
  operator 1 :SCHEMA.<, operator 2 :SCHEMA.<=, operator 3 :SCHEMA.=, operator 4 :SCHEMA.>=, operator 5 :SCHEMA.>, function 1 :SCHEMA.vector_cmp(:SCHEMA.vector, :SCHEMA.vector);
create aggregate :SCHEMA.sum(:SCHEMA.vector) (sfunc = :SCHEMA.vector_add, stype = :SCHEMA.vector, parallel = safe);
create function :SCHEMA.vector_average(:SCHEMA.vector[]) returns :SCHEMA.vector language sql immutable strict parallel safe set search_path = '' as $fn$
  select :SCHEMA.array_to_vector(array(
    select avg(x) from unnest($1) as given (value), unnest(:SCHEMA.vector_elements(value)) with ordinality as element (x, place) group by place order by place
  ), -1, true); $fn$;
create function :SCHEMA.vector_collect(:SCHEMA.vector[], :SCHEMA.vector) returns :SCHEMA.vector[] language sql immutable parallel safe set search_path = '' as $fn$
  select case when $2 is null then $1 else array_append($1, $2) end; $fn$;
create aggregate :SCHEMA.avg(:SCHEMA.vector) (sfunc = :SCHEMA.vector_collect, stype = :SCHEMA.vector[], finalfunc = :SCHEMA.vector_average, initcond = '{}');
