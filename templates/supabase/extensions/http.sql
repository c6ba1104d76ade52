-- Stands in for the extension http where Postgres lacks it: functions that call it can be created, and say what to do when they run.
create domain :SCHEMA.http_method as text;
create type :SCHEMA.http_header as (field character varying, value character varying);
create type :SCHEMA.http_request as (method :SCHEMA.http_method, uri character varying, headers :SCHEMA.http_header[], content_type character varying, content character varying);
create type :SCHEMA.http_response as (status integer, content_type character varying, headers :SCHEMA.http_header[], content character varying);
create function :SCHEMA.http_header(field character varying, value character varying) returns :SCHEMA.http_header language sql immutable set search_path = '' as $fn$ select $1, $2; $fn$;
create function :SCHEMA.http(request :SCHEMA.http_request) returns :SCHEMA.http_response language plpgsql set search_path = '' as $fn$
begin
  raise exception 'This Postgres has no extension http, so SQL cannot wait for the response of %', request.uri
    using errcode = 'feature_not_supported', hint = 'Send the request with net.http_get() or net.http_post(), and read its response in net._http_response.';
end;
$fn$;
create function :SCHEMA.http_get(uri character varying) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('GET', $1, null, null, null)); $fn$;
create function :SCHEMA.http_get(uri character varying, data jsonb) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('GET', $1, null, null, null)); $fn$;
create function :SCHEMA.http_post(uri character varying, content character varying, content_type character varying) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('POST', $1, null, $3, $2)); $fn$;
create function :SCHEMA.http_post(uri character varying, data jsonb) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('POST', $1, null, 'application/x-www-form-urlencoded', null)); $fn$;
create function :SCHEMA.http_put(uri character varying, content character varying, content_type character varying) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('PUT', $1, null, $3, $2)); $fn$;
create function :SCHEMA.http_patch(uri character varying, content character varying, content_type character varying) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('PATCH', $1, null, $3, $2)); $fn$;
create function :SCHEMA.http_delete(uri character varying) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('DELETE', $1, null, null, null)); $fn$;
create function :SCHEMA.http_delete(uri character varying, content character varying, content_type character varying) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('DELETE', $1, null, $3, $2)); $fn$;
create function :SCHEMA.http_head(uri character varying) returns :SCHEMA.http_response language sql set search_path = '' as $fn$ select :SCHEMA.http(('HEAD', $1, null, null, null)); $fn$;
create function :SCHEMA.http_set_curlopt(curlopt character varying, value character varying) returns boolean language sql set search_path = '' as $fn$ select true; $fn$;
create function :SCHEMA.http_reset_curlopt() returns boolean language sql set search_path = '' as $fn$ select true; $fn$;
create function :SCHEMA.urlencode(string character varying) returns text language plpgsql immutable strict set search_path = '' as $fn$ begin return net._urlencode_string($1); end; $fn$;
create function :SCHEMA.urlencode(data jsonb) returns text language plpgsql immutable strict set search_path = '' as $fn$
begin
  return (select string_agg(net._urlencode_string(key) || '=' || net._urlencode_string(value), '&') from jsonb_each_text($1));
end;
$fn$;
