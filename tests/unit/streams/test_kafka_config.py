"""Settings of Kafka's client that are somebody's own: handed on, and told to nobody else."""

import pytest
from confluent_kafka import Consumer, Producer

from cli_cases import assert_fails, invoke
from kafka_cases import broker, rows_of, send, spread
from sapwood.streams import StreamError, kafka_topic, open_stream
from sapwood.streams.kafka_address import address_of
from sapwood.streams.kafka_config import OWN, Config, config_of
from sapwood.streams.kafka_topic import client_of

SECRET = "correct-horse-battery"
SASL = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "anna",
    "sasl.password": SECRET,
}


@pytest.fixture(scope="module")
def url():
    with broker() as (address, _):
        send(address, "rows", spread(rows_of(600)))
        yield f"kafka://{address}/rows"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a file of settings, and return its name."""
    monkeypatch.chdir(tmp_path)

    def write(settings):
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (tmp_path / "client.properties").write_text("\n".join(["# mine", "", *lines]) + "\n")
        return "client.properties"

    return write


def caught(kind):
    """A class of client that keeps what it is given."""
    given = []

    def make(settings):
        given.append(settings)
        return kind(settings)

    return make, given


# -- what is read ----------------------------------------------------------------------------------


def test_a_file_is_read_by_lines(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text("# who\nsasl.username=anna\n\n  sasl.password = a=b c \nssl.key.pem=\n")
    assert config_of(path) == {"sasl.username": "anna", "sasl.password": "a=b c", "ssl.key.pem": ""}
    assert config_of({"client.id": "me"}) == {"client.id": "me"}
    assert config_of(None) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"sasl.password:{SECRET}", "line 1: name=value is expected"),
        (f"a=1\n={SECRET}", "line 2: name=value is expected"),
        (f"sasl password={SECRET}", "line 1: name=value is expected"),
        (f"sasl.password=x\nsasl.password={SECRET}", "line 2: sasl.password was set before"),
        *((f"{name}={SECRET}", f"{name} is decided by sapwood") for name in (*OWN, "error_cb")),
    ],
)
def test_what_is_no_setting_is_refused_without_telling_it(tmp_path, text, words):
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(StreamError, match=words) as caught:
        config_of(path)
    assert SECRET not in str(caught.value)


def test_values_are_not_shown():
    config = Config(SASL)
    address = address_of("kafka://one:9092/rows", config)
    for shown in (repr(config), str(config), f"{config}", repr(address), str(address)):
        assert SECRET not in shown
    assert config.without_values(f"ssl: {SECRET} of anna, sasl_plaintext") == (
        "ssl: *** of ***, sasl_plaintext"
    )


# -- where it goes ---------------------------------------------------------------------------------


def test_settings_reach_the_client_and_ours_go_before():
    config = Config({**SASL, "client.id": "me", "fetch.wait.max.ms": "7"})
    address = address_of("kafka://127.0.0.1:9/rows", config)
    for kind, own in ((Consumer, {"group.id": "g"}), (Producer, {})):
        make, given = caught(kind)
        client_of(make, address, **own, **{"fetch.wait.max.ms": 100} if own else {})
        [settings] = given
        assert {name: settings[name] for name in SASL} == SASL
        assert settings["client.id"] == "me"
        assert settings["bootstrap.servers"] == "127.0.0.1:9"
        assert settings["fetch.wait.max.ms"] == (100 if own else "7")


def test_a_topic_is_read_with_settings(url, written):
    stream = open_stream(url, target="y", until_end=True, kafka_config={"client.id": "me"})
    assert sum(len(chunk) for chunk in stream.chunks()) == 600
    stream = open_stream(url, target="y", until_end=True, kafka_config=written({"client.id": "me"}))
    assert stream.length is None
    assert sum(len(chunk) for chunk in stream.chunks()) == 600


def test_no_value_is_in_anything_that_is_written(url, written, tmp_path):
    """A client that needs no password is given one all the same."""
    name = written({"sasl.username": "anna", "sasl.password": SECRET})
    common = ("--kafka-config", name, "--until-end")
    run = (url, "-t", "y", "--checkpoint", "run", "--every", "100", *common)
    found = [
        invoke("train", *run, "--save", "m.sapwood"),
        invoke("evaluate", url, "-t", "y", "--report", "report", "--json", *common),
        invoke("predict", "m.sapwood", url, "--to", f"{url}-said", *common),
        invoke("predict", "m.sapwood", url, "--output", "p.csv", "--checkpoint", "p", *common),
    ]
    for each in found:
        assert each.code == 0, each.stderr
        assert SECRET not in each.stdout + each.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != name]
    assert len(files) > 5
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path


def test_predictions_of_a_file_go_to_a_topic_with_settings(url, written, tmp_path):
    name = written({"client.id": "me"})
    (tmp_path / "rows.csv").write_text("a,b,city,y\n" + "1,2,Oslo,3\n" * 30)
    assert invoke("train", "rows.csv", "-t", "y", "--save", "m.sapwood").code == 0
    to = ("--to", f"{url}-of-a-file", "--kafka-config", name)
    found = invoke("predict", "m.sapwood", "rows.csv", *to)
    assert found.code == 0, found.stderr
    (tmp_path / name).write_text("no.such=1\n")
    found = invoke("predict", "m.sapwood", "rows.csv", *to)
    assert_fails(found, 'No such configuration property: "no.such"')


# -- what is told when it is wrong -----------------------------------------------------------------


def test_a_client_that_is_not_let_in_is_told_at_once(url, written, monkeypatch):
    """The broker that librdkafka plays knows nothing of SASL."""
    monkeypatch.setattr(kafka_topic, "FIRST_PATIENCE", 100.0)
    with pytest.raises(StreamError, match=r"does not let this client in: .* SASL") as caught:
        open_stream(url, target="y", until_end=True, kafka_config=SASL)
    assert SECRET not in str(caught.value)
    assert "--kafka-config" in str(caught.value)


def test_a_broker_that_speaks_no_tls_is_told(url, monkeypatch):
    monkeypatch.setattr(kafka_topic, "FIRST_PATIENCE", 0.1)
    with pytest.raises(StreamError, match=r"no broker has answered for 0\.1 seconds \(ssl://"):
        open_stream(url, target="y", until_end=True, kafka_config={"security.protocol": "ssl"})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sasl.pasword": SECRET}, 'No such configuration property: "sasl.pasword"'),
        ({"security.protocol": SECRET}, r'Invalid value "\*\*\*" for .* "security.protocol"'),
        (
            {"security.protocol": "ssl", "ssl.ca.location": f"/nowhere/{SECRET}"},
            "ssl.ca.location failed",
        ),
    ],
)
def test_settings_that_cannot_be_are_told_without_their_values(url, settings, words):
    with pytest.raises(StreamError, match=f"a setting of the client is wrong: .*{words}") as caught:
        open_stream(url, target="y", until_end=True, kafka_config=settings)
    assert SECRET not in str(caught.value)


def test_settings_without_a_topic_are_refused(written, tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n")
    name = written({"client.id": "me"})
    with pytest.raises(StreamError, match="kafka_config is for topics of Kafka"):
        open_stream(tmp_path / "rows.csv", kafka_config=name)
    found = invoke("evaluate", "friedman:rows=10", "--kafka-config", name)
    assert_fails(found, "--kafka-config is for files")


def test_a_file_of_settings_that_is_not_there_is_told(url):
    found = invoke("evaluate", url, "-t", "y", "--kafka-config", "nowhere.properties")
    assert found.code == 2
    assert "nowhere.properties" in found.stderr
