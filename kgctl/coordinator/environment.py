"""Events of the coordinator's surroundings: the cluster's topics and a group's settings change."""

from __future__ import annotations

from kgctl.coordinator.consumer.hooks import on_topics_changed
from kgctl.coordinator.group_config import GroupConfig
from kgctl.coordinator.offsets.delete import delete_offsets_of_topics
from kgctl.coordinator.requests import TopicsChanged, UpdateGroupConfig
from kgctl.coordinator.results import Done
from kgctl.coordinator.shard import Shard
from kgctl.errors import UsageError
from kgctl.model.error_codes import ErrorCode


def handle_topics_changed(shard: Shard, request: TopicsChanged) -> None:
    """Take over the new image; offsets of topics that are gone, or that were created anew, go."""
    old, shard.image = shard.image, request.image
    gone = []
    for name, topic in old.topics.items():
        successor = request.image.topics.get(name)
        if successor is None or successor.topic_id != topic.topic_id:
            gone.append(topic)
    if gone:
        delete_offsets_of_topics(shard, gone)
    on_topics_changed(shard, old)
    shard.reply(request.request_id, Done())


def handle_update_group_config(shard: Shard, request: UpdateGroupConfig) -> None:
    """Set the group's own settings, all of them at once; a wrong one refuses them all."""
    try:
        config = GroupConfig.from_properties(request.config, shard.config)
    except UsageError:
        shard.reply(request.request_id, Done(error=ErrorCode.INVALID_CONFIG))
        return
    shard.group_configs[request.group_id] = config
    shard.reply(request.request_id, Done())
