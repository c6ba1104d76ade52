-- Stands in for the extension pgjwt where Postgres lacks it.
create function :SCHEMA.url_encode(data bytea) returns text language sql immutable set search_path = '' as $fn$
  select translate(encode(data, 'base64'), E'+/=\n', '-_'); $fn$;
create function :SCHEMA.url_decode(data text) returns bytea language sql immutable set search_path = '' as $fn$
  select decode(translate(data, '-_', '+/') || repeat('=', (4 - length(data) % 4) % 4), 'base64'); $fn$;
create function :SCHEMA.algorithm_sign(signables text, secret text, algorithm text) returns text language sql immutable set search_path = '' as $fn$
  select :SCHEMA.url_encode(extensions.hmac(signables, secret, case algorithm when 'HS256' then 'sha256' when 'HS384' then 'sha384' when 'HS512' then 'sha512' else '' end)); $fn$;
create function :SCHEMA.sign(payload json, secret text, algorithm text default 'HS256') returns text language sql immutable set search_path = '' as $fn$
  with token as (
    select :SCHEMA.url_encode(convert_to('{"alg":"' || algorithm || '","typ":"JWT"}', 'UTF8')) || '.' || :SCHEMA.url_encode(convert_to(payload::text, 'UTF8')) as signables
  ) select signables || '.' || :SCHEMA.algorithm_sign(signables, secret, algorithm) from token; $fn$;
create function :SCHEMA.verify(token text, secret text, algorithm text default 'HS256') returns table (header json, payload json, valid boolean) language sql immutable set search_path = '' as $fn$
  select convert_from(:SCHEMA.url_decode(part[1]), 'UTF8')::json, convert_from(:SCHEMA.url_decode(part[2]), 'UTF8')::json,
    part[3] = :SCHEMA.algorithm_sign(part[1] || '.' || part[2], secret, algorithm)
      and now() between coalesce(to_timestamp((convert_from(:SCHEMA.url_decode(part[2]), 'UTF8')::json ->> 'nbf')::double precision), '-infinity')
        and coalesce(to_timestamp((convert_from(:SCHEMA.url_decode(part[2]), 'UTF8')::json ->> 'exp')::double precision), 'infinity')
  from string_to_array(token, '.') as part; $fn$;
